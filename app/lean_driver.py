"""Textual's driver for Unix terminals, which sends only what changed."""

from types import SimpleNamespace
from typing import Any, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.drivers.linux_driver import LinuxDriver
from textual.keys import Keys

from gpudeck.app.repaint import Repaint

# Escape with a digit close behind arrives as one sequence.  Textual takes it for the sign that Option makes of the
# digit on a Mac ("£"), which would be typed into the field that was to be left: they are two keys, however fast.
cast("dict[str, object]", ANSI_SEQUENCES_KEYS).update(
    {f"\x1b{digit}": (Keys.Escape, SimpleNamespace(value=digit)) for digit in "0123456789"}
)


class LeanDriver(LinuxDriver):
    """The same screen for a quarter of the bytes (docs/benchmarks.md)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._repaint = Repaint()

    def write(self, data: str) -> None:
        told = self._repaint.through(data)
        if told:
            super().write(told)

    def forget(self) -> None:
        """Draw every cell anew: the terminal may show anything, after a change of its size or another's words."""
        self._repaint.forget()
