"""The driver's own events, through the real pynvml."""

import time
from collections.abc import Callable

import pytest

from gpudeck.services.box.nvml import NvmlSource
from gpudeck.services.box.nvml.events import KEPT, EventLog
from gpudeck.services.box.nvml.xid import XIDS, sentence, xid_of
from gpudeck.services.box.types import BoxEvent, Demand, Severity
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import busy, pair

READINGS = (busy(0), busy(1))
PATIENCE_S = 20.0


def events_once(source: NvmlSource, true: Callable[[tuple[BoxEvent, ...]], bool]) -> tuple[BoxEvent, ...]:
    deadline = time.monotonic() + PATIENCE_S
    while not true(events := source.read(Demand.NOTHING).events):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return events


def test_an_xid_is_told_with_its_meaning_while_the_readings_go_on(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS, **{"event.0": "0 8 13"})
    source.open()
    # The set of events may not be made yet; those from before are not told.
    playing.change({f"event.{number}": "1 8 31" for number in range(1, 4)})
    deadline = time.monotonic() + PATIENCE_S
    number = 4
    while not (events := source.read(Demand.NOTHING).events):
        assert time.monotonic() < deadline
        playing.change({f"event.{number}": "1 8 31"})
        number += 1
        time.sleep(0.02)
    assert [(event.gpu, event.xid, event.severity) for event in events] == [(1, 31, Severity.ERROR)]
    assert events[0].text == (
        "GPU 1: Xid 31, a program touched an invalid address in the card's memory: restart the engine that ran there; "
        "if it comes again under another engine too, suspect the card."
    )
    assert abs(events[0].at - time.time()) < PATIENCE_S


def test_a_card_that_falls_off_the_bus_tells_its_xid_and_its_fault(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    number = 0

    def lost(events: tuple[BoxEvent, ...]) -> bool:
        nonlocal number
        playing.change({f"event.{number}": "1 8 79", "gpu.1.fault": "!GPU_IS_LOST"})
        number += 1
        return {event.xid for event in events} == {79, None}

    events = events_once(source, lost)
    assert all(event.gpu == 1 for event in events)
    assert "has fallen off the bus" in " ".join(event.text for event in events)


@pytest.mark.parametrize(
    ("kind", "told"), [("2 0", "a memory error could not be corrected"), ("256 0", "MIG devices were set up anew")]
)
def test_what_has_no_xid_of_its_own_is_told_too(fake_nvml: FakeNvml, source: NvmlSource, kind: str, told: str) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    number = 0

    def happens(events: tuple[BoxEvent, ...]) -> bool:
        nonlocal number
        playing.change({f"event.{number}": f"0 {kind}"})
        number += 1
        return bool(events)

    assert told in events_once(source, happens)[0].text


@pytest.mark.parametrize("types", ["!NOT_SUPPORTED", "4"])
def test_a_card_without_events_is_read_all_the_same(fake_nvml: FakeNvml, source: NvmlSource, types: str) -> None:
    fake_nvml(pair(), READINGS, **{"gpu.0.event_types": types, "gpu.1.event_types": types})
    source.open()
    assert source.read().readings == READINGS


def test_a_storm_is_told_once_in_ten_seconds_and_the_log_does_not_grow() -> None:
    now = 0.0
    log = EventLog(lambda: now)
    for _ in range(100):
        log.tell(Severity.ERROR, "the same", 0, 31)
        now += 1.0
    assert [event.at for event in log.last()] == [10.0 * time for time in range(10)]
    for number in range(1000):
        log.tell(Severity.INFO, f"event {number}")
    assert len(log.last()) == KEPT
    assert log.last()[-1].text == "event 999"


def test_every_xid_makes_one_plain_sentence() -> None:
    for number in XIDS:
        text = sentence(3, number)
        assert text.startswith(f"GPU 3: Xid {number}, ")
        assert text.endswith(".")
        assert text.count(".") == 1
    assert "does not know" in sentence(0, 9999)
    assert xid_of(79).severity is Severity.ERROR
