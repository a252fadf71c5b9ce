"""What cards did between two moments."""

from gpudeck.services.bench.cards import CardMeter
from gpudeck.services.bench.types import CardUse
from gpudeck.services.box.types import Box, Reading, Snapshot


def snapshot(percent: int | None, watts: float | None, used: int | None = 5) -> Snapshot:
    readings = (
        Reading(0, utilization_percent=percent, power_w=watts, memory_used_bytes=used, memory_utilization_percent=40),
        Reading(1),
        Reading(2, utilization_percent=100),
    )
    return Snapshot(Box(()), 0.0, readings)


def test_means_and_the_most_of_the_time_that_is_asked_for() -> None:
    clock = iter([1.0, 2.0, 3.0, 4.0])
    meter = CardMeter((0, 1), lambda: next(clock))
    for reading in (snapshot(100, 900.0, 99), snapshot(50, 100.0, 7), snapshot(70, 200.0, 9), snapshot(0, 0.0, 99)):
        meter.add(reading)
    first, second = meter.use(1.5, 3.5)
    assert first == CardUse(0, 60.0, 40.0, 9, 150.0)
    assert second == CardUse(1)


def test_a_level_shorter_than_the_beat_is_told_by_the_next_reading() -> None:
    clock = iter([1.0, 2.0])
    meter = CardMeter((0,), lambda: next(clock))
    meter.add(snapshot(0, 1.0))
    meter.add(snapshot(80, 300.0))
    assert meter.use(1.2, 1.4)[0].utilization == 80
    assert CardMeter((0,)).use(0, 1) == (CardUse(0),)
