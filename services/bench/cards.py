"""What the cards do while a load runs."""

import time
from collections.abc import Callable, Sequence
from threading import Lock

from gpudeck.services.bench.types import CardUse
from gpudeck.services.box.types import Reading, Snapshot


class CardMeter:
    """Keeps the readings of some cards; `add` may be called from the thread that reads the box."""

    def __init__(self, gpus: Sequence[int], clock: Callable[[], float] = time.monotonic) -> None:
        self._gpus = tuple(dict.fromkeys(gpus))
        self._clock = clock
        self._lock = Lock()
        self._kept: list[tuple[float, tuple[Reading, ...]]] = []

    def add(self, snapshot: Snapshot) -> None:
        readings = tuple(reading for gpu in self._gpus if (reading := snapshot.reading(gpu)) is not None)
        with self._lock:
            self._kept.append((self._clock(), readings))

    def use(self, began: float, ended: float) -> tuple[CardUse, ...]:
        """The use of each card between two moments of the clock; readings before `began` are forgotten.

        A level shorter than the beat between two readings is told by the one that follows it.
        """
        with self._lock:
            self._kept = [(at, readings) for at, readings in self._kept if at >= began]
            within = [readings for at, readings in self._kept if at <= ended]
            if not within and self._kept:
                within = [self._kept[0][1]]
        return tuple(
            _use(gpu, [each for readings in within for each in readings if each.gpu == gpu]) for gpu in self._gpus
        )


def _use(gpu: int, readings: Sequence[Reading]) -> CardUse:
    used = [reading.memory_used_bytes for reading in readings if reading.memory_used_bytes is not None]
    return CardUse(
        gpu,
        _mean([reading.utilization_percent for reading in readings]),
        _mean([reading.memory_utilization_percent for reading in readings]),
        max(used, default=None),
        _mean([reading.power_w for reading in readings]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return sum(told) / len(told) if told else None
