"""PCIe and NVLink throughput of one card."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpudeck.services.box.nvml.ask import Asker, FieldId
from gpudeck.services.box.types import LaneReading

_FIRST_LOOK_S = 0.05  # between the two looks that a first rate needs
_KIB = 1024


class Traffic:
    """The throughput of a card.  NVLink counts bytes: a rate is the difference between two looks."""

    def __init__(self, ask: Asker, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._before: tuple[float, Mapping[FieldId, float]] | None = None  # when, and the counters then
        self._counters: tuple[int, int, int] | None = None  # the fields for sent and received, and their unit in bytes

    def pcie(self) -> tuple[float | None, float | None]:
        """Bytes a second out of the card and into it, over the 20 ms each that the driver watches for it."""
        nvml = self._ask.nvml
        sent, received = (
            self._ask(f"PCIe throughput {which}", _pcie_call(nvml, which))
            for which in (nvml.NVML_PCIE_UTIL_TX_BYTES, nvml.NVML_PCIE_UTIL_RX_BYTES)
        )
        return _bytes(sent), _bytes(received)

    def nvlink(self, lanes: Sequence[int]) -> tuple[LaneReading, ...]:
        """Bytes a second over each of these lanes, those that are not counted left out."""
        if not lanes:
            return ()
        if self._before is None:
            self._before = self._look(lanes)
            if not self._before[1]:
                self._before = None
                return ()
            time.sleep(_FIRST_LOOK_S)
        before, now = self._before, self._look(lanes)
        self._before = now
        sent, received, unit = self._counters or (0, 0, 0)
        seconds = now[0] - before[0]

        def rate(field: FieldId) -> float | None:
            moved = now[1].get(field, -1) - before[1].get(field, 0)
            # A counter that went back was reset, or the lane trained anew.
            return moved * unit / seconds if moved >= 0 and field in before[1] and seconds > 0 else None

        return tuple(LaneReading(lane, rate((sent, lane)), rate((received, lane))) for lane in lanes)

    def pause(self) -> None:
        """Nobody looks: the next rate begins anew, and is not one over the time away."""
        self._before = None

    def _look(self, lanes: Sequence[int]) -> tuple[float, Mapping[FieldId, float]]:
        """The counters of the lanes: KiB of data up to Hopper, bytes on Blackwell."""
        nvml = self._ask.nvml
        kinds = [
            (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, _KIB),
            (nvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, nvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, 1),
        ]
        for sent, received, unit in [self._counters] if self._counters else kinds:
            at = self._clock()
            told = self._ask.fields([(field, lane) for lane in lanes for field in (sent, received)])
            if told:
                self._counters = (sent, received, unit)
                return at, told
        return self._clock(), {}


def total(lanes: Sequence[LaneReading], direction: str) -> float | None:
    """The sum over the lanes of which it is known; None where it is known of none."""
    known = [rate for lane in lanes if (rate := getattr(lane, direction)) is not None]
    return sum(known) if known else None


def _pcie_call(nvml: Any, which: int) -> Callable[[Any], Any]:
    return lambda handle: nvml.nvmlDeviceGetPcieThroughput(handle, which)


def _bytes(kilobytes: int | None) -> float | None:
    return None if kilobytes is None else kilobytes * 1000.0
