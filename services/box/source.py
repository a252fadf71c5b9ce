"""Which box is read: this machine's, a recorded one, or a simulated one."""

from pathlib import Path

from gpudeck.services.box.simulated import SimulatedSource, simulated_boxes
from gpudeck.services.box.types import BoxSource
from gpudeck.services.errors import OperatorError


def open_source(*, demo: str | None = None, box_file: str | None = None, loads: Path | None = None) -> BoxSource:
    """The source of the box that is meant, not yet opened.

    `demo` names a demo box ("" the default one), `box_file` a box file that is replayed; with neither it is this
    machine through NVML.  `loads` is where a demo's simulated engines tell their loads.  Raises OperatorError where
    both are given, or the demo box is unknown.
    """
    if demo is not None and box_file is not None:
        raise OperatorError("A demo box and a box file are two boxes: give one of them.")
    if demo is not None:
        return SimulatedSource(demo or demo_boxes()[0], loads)
    if box_file is not None:
        from gpudeck.services.box.replay import ReplaySource

        return ReplaySource(Path(box_file))
    from gpudeck.services.box.nvml import NvmlSource

    return NvmlSource()


def demo_boxes() -> tuple[str, ...]:
    """The names that `demo` may have, the default one first."""
    return simulated_boxes()
