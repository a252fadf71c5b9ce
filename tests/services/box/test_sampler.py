import threading
import time
from collections.abc import Callable
from queue import Queue

import pytest

from gpudeck.services.box.nvml import NvmlSource
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


def test_stop_does_not_wait_for_a_call_that_hangs(fake_nvml: FakeNvml) -> None:
    playing = fake_nvml(pair(), READINGS)
    delivered: list[Snapshot | OperatorError] = []

    def age() -> float:
        last = delivered[-1]
        assert isinstance(last, Snapshot)
        return time.time() - last.at

    sampler = Sampler(NvmlSource(), delivered.append, interval=0.01)
    sampler.start()
    until(lambda: bool(delivered))
    playing.change({"gpu.1.utilization.delay_us": str(600_000_000)})
    until(lambda: age() > 0.5)  # fifty beats without a reading: it hangs
    stopping = threading.Thread(target=sampler.stop)
    stopping.start()
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()
    assert box_threads() == 1
    before = len(delivered)
    playing.change({"gpu.1.utilization.delay_us": None})
    until(lambda: box_threads() == 0)
    assert len(delivered) == before


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
    assert read_once(NvmlSource()).readings == READINGS
    playing.change({"init": "!NO_PERMISSION"})
    with pytest.raises(OperatorError, match="may not open"):
        read_once(NvmlSource())
    until(lambda: box_threads() == 0)
