import threading
import time
from collections.abc import Callable
from dataclasses import replace
from queue import Queue

import pytest

from gpudeck.services.box.nvml import NvmlSource, sweep
from gpudeck.services.box.sampler import Sampler, read_once
from gpudeck.services.box.types import Box, Demand, Snapshot
from gpudeck.services.errors import OperatorError
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import busy, pair

PATIENCE_S = 20.0
Outcomes = Queue[Snapshot | OperatorError]
READINGS = (busy(0), busy(1))


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def until_snapshot(outcomes: Outcomes, true: Callable[[Snapshot], bool]) -> Snapshot:
    deadline = time.monotonic() + PATIENCE_S
    while not true(snapshot := next_snapshot(outcomes)):
        assert time.monotonic() < deadline
    return snapshot


def box_threads() -> int:
    return sum(thread.name == "gpudeck-box" for thread in threading.enumerate())


def next_snapshot(outcomes: Outcomes) -> Snapshot:
    outcome = outcomes.get(timeout=PATIENCE_S)
    assert isinstance(outcome, Snapshot)
    return outcome


def test_it_delivers_at_the_beat_and_leaves_no_thread(fake_nvml: FakeNvml) -> None:
    fake_nvml(pair(), READINGS)
    outcomes: Outcomes = Queue()
    sampler = Sampler(NvmlSource(), outcomes.put, interval=0.01)
    sampler.start()
    first, second = next_snapshot(outcomes), next_snapshot(outcomes)
    assert first.readings == READINGS
    assert second.at > first.at
    sampler.stop()
    until(lambda: box_threads() == 0)


def test_wake_and_a_new_interval_read_at_once(fake_nvml: FakeNvml) -> None:
    fake_nvml(pair(), READINGS)
    outcomes: Outcomes = Queue()
    sampler = Sampler(NvmlSource(), outcomes.put, interval=3600)
    sampler.start()
    next_snapshot(outcomes)
    sampler.wake()
    next_snapshot(outcomes)
    sampler.interval = 1800
    next_snapshot(outcomes)
    assert sampler.interval == 1800
    sampler.stop()


def test_a_driver_that_goes_and_comes_back_is_told_once_and_found(fake_nvml: FakeNvml) -> None:
    playing = fake_nvml(pair(), READINGS, init="!DRIVER_NOT_LOADED")
    outcomes: Outcomes = Queue()
    sampler = Sampler(NvmlSource(), outcomes.put, interval=0.01, retry=0.01)
    sampler.start()
    assert "modprobe" in str(outcomes.get(timeout=PATIENCE_S))
    playing.change({"init": None})
    next_snapshot(outcomes)  # not the same error again
    playing.change({"init": "!DRIVER_NOT_LOADED", "gpu.0.fault": "!GPU_IS_LOST", "gpu.1.fault": "!GPU_IS_LOST"})
    told: list[str] = []
    while len(told) < 2:
        outcome = outcomes.get(timeout=PATIENCE_S)
        if isinstance(outcome, OperatorError):
            told.append(str(outcome))
    assert "fallen off" in told[0]
    assert "modprobe" in told[1]
    sampler.stop()


def gpu_threads() -> list[str]:
    ours = ("gpudeck-box", "gpudeck-gpu", "gpudeck-nvml", "gpudeck-events")
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(ours)]


def test_a_card_that_hangs_shows_its_age_while_the_others_go_on_and_stop_waits_for_nothing(
    fake_nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "PATIENCE_S", 0.05)
    monkeypatch.setattr(sweep, "HANGS_S", 0.2)
    playing = fake_nvml(pair(), READINGS)
    outcomes: Outcomes = Queue()
    sampler = Sampler(NvmlSource(), outcomes.put, interval=0.01)
    sampler.start()
    next_snapshot(outcomes)
    playing.change({"gpu.1.utilization.delay_us": str(600_000_000), "gpu.0.temperature.0": "77"})

    def as_wanted(snapshot: Snapshot) -> bool:
        well, ill = snapshot.readings
        return (well.temperature_c, well.fault) == (77, None) and ill.fault is not None

    hung = until_snapshot(outcomes, as_wanted)
    well, ill = hung.readings
    assert hung.age_of(ill, hung.at) > max(0.2, hung.age_of(well, hung.at))
    assert ill == replace(READINGS[1], fault=ill.fault)
    assert "does not answer" in (ill.fault or "")
    assert ill.fault in [event.text for event in hung.events]

    sampler.stop()
    until(lambda: gpu_threads() == ["gpudeck-gpu1"])  # what hangs is left alone
    outcomes = Queue()
    playing.change({"gpu.1.utilization.delay_us": None})
    until(lambda: gpu_threads() == [])
    assert outcomes.empty()


def test_a_card_that_answers_again_after_hanging_is_fresh(fake_nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "PATIENCE_S", 0.05)
    monkeypatch.setattr(sweep, "HANGS_S", 0.1)
    playing = fake_nvml(pair(), READINGS)
    outcomes: Outcomes = Queue()
    sampler = Sampler(NvmlSource(), outcomes.put, interval=0.01)
    sampler.start()
    next_snapshot(outcomes)
    playing.change({"gpu.1.delay_us": str(600_000_000)})
    until_snapshot(outcomes, lambda snapshot: snapshot.readings[1].fault is not None)
    playing.change({"gpu.1.delay_us": None, "gpu.1.temperature.0": "50"})
    back = until_snapshot(outcomes, lambda snapshot: snapshot.readings[1].temperature_c == 50)
    assert back.readings[1].fault is None
    assert back.events[-1].text == "GPU 1 answers again."
    sampler.stop()
    until(lambda: gpu_threads() == [])


@pytest.mark.parametrize("hanging", ["init", "gpu.0.handle"])
def test_an_opening_that_hangs_is_left_to_itself(fake_nvml: FakeNvml, hanging: str) -> None:
    playing = fake_nvml(pair(), READINGS, **{f"{hanging}.delay_us": str(600_000_000)})
    outcomes: Outcomes = Queue()
    sampler = Sampler(NvmlSource(), outcomes.put, interval=0.01)
    sampler.start()
    until(lambda: "gpudeck-nvml" in gpu_threads())
    sampler.stop()  # comes back, though the call does not
    playing.change({f"{hanging}.delay_us": None})
    until(lambda: gpu_threads() == [])
    assert outcomes.empty()


def test_what_is_newly_looked_at_is_read_at_once(fake_nvml: FakeNvml) -> None:
    fake_nvml(pair(), READINGS)
    outcomes: Outcomes = Queue()
    sampler = Sampler(NvmlSource(), outcomes.put, interval=3600, demand=Demand.NOTHING)
    sampler.start()
    first = next_snapshot(outcomes).readings[0]
    assert (first.temperature_c, first.ecc, first.pcie_tx_bytes_s, first.pcie_gen) == (61, None, None, None)
    sampler.demand = Demand.HEALTH
    assert next_snapshot(outcomes).readings[0].ecc == READINGS[0].ecc
    sampler.demand = Demand.NOTHING
    sampler.demand = Demand.ALL
    assert until_snapshot(outcomes, lambda snapshot: snapshot.readings == READINGS)
    sampler.stop()


class Defective:
    """A source with a defect."""

    def open(self) -> Box:
        return pair()

    def read(self, demand: Demand = Demand.ALL) -> Snapshot:
        raise ZeroDivisionError("a defect")

    def close(self) -> None: ...


def test_a_defect_is_told_and_does_not_end_the_thread_in_silence() -> None:
    outcomes: Outcomes = Queue()
    sampler = Sampler(Defective(), outcomes.put, interval=0.01, retry=0.01)
    sampler.start()
    assert "ZeroDivisionError('a defect')" in str(outcomes.get(timeout=PATIENCE_S))
    sampler.stop()
    until(lambda: box_threads() == 0)


def test_read_once_gives_a_snapshot_or_the_refusal(fake_nvml: FakeNvml) -> None:
    playing = fake_nvml(pair(), READINGS)
    assert read_once(NvmlSource(), Demand.ALL).readings == READINGS
    assert read_once(NvmlSource()).readings[0].temperature_c == READINGS[0].temperature_c
    playing.change({"init": "!NO_PERMISSION"})
    with pytest.raises(OperatorError, match="may not open"):
        read_once(NvmlSource())
    until(lambda: box_threads() == 0)
