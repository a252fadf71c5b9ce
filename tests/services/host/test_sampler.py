"""The thread that reads the machine: only while somebody looks, and never in the way of the end."""

import threading
from collections.abc import Iterator
from queue import Empty, SimpleQueue

import pytest

from gpudeck.services.host.sampler import HostSampler
from gpudeck.services.host.types import HostReading
from tests.services.host.hosts import FINE

SOON_S = 20.0


class Machine:
    """Counts how often it is read, and on which threads; may hang."""

    def __init__(self) -> None:
        self.reads = 0
        self.threads: set[str] = set()
        self.answers = threading.Event()
        self.answers.set()

    def read(self) -> HostReading:
        self.reads += 1
        self.threads.add(threading.current_thread().name)
        self.answers.wait()
        return FINE


@pytest.fixture
def machine() -> Iterator[Machine]:
    machine = Machine()
    yield machine
    machine.answers.set()


def sampler(machine: Machine, delivered: "SimpleQueue[HostReading]", beat: float) -> HostSampler:
    return HostSampler(lambda: machine, delivered.put, beat)


def test_nothing_is_read_before_somebody_looks(machine: Machine) -> None:
    idle = sampler(machine, SimpleQueue(), 0.001)
    idle.stop()
    assert machine.reads == 0


def test_it_reads_at_once_and_at_the_beat_on_its_own_thread(machine: Machine) -> None:
    delivered: SimpleQueue[HostReading] = SimpleQueue()
    reading = sampler(machine, delivered, 0.001)
    reading.show(True)
    for _ in range(3):
        assert delivered.get(timeout=SOON_S) is FINE
    reading.stop()
    assert machine.threads == {"gpudeck-host"}


def test_looking_away_ends_the_readings_and_looking_again_begins_them_at_once(machine: Machine) -> None:
    delivered: SimpleQueue[HostReading] = SimpleQueue()
    reading = sampler(machine, delivered, 3600.0)
    reading.show(True)
    delivered.get(timeout=SOON_S)
    reading.show(False)
    with pytest.raises(Empty):
        delivered.get(timeout=0.2)
    assert machine.reads == 1
    reading.show(True)
    delivered.get(timeout=SOON_S)
    assert machine.reads == 2
    reading.stop()


def test_a_reading_that_hangs_does_not_hold_up_the_end(machine: Machine) -> None:
    delivered: SimpleQueue[HostReading] = SimpleQueue()
    machine.answers.clear()
    hung = sampler(machine, delivered, 0.001)
    hung.show(True)
    hung.stop()
    machine.answers.set()
    with pytest.raises(Empty):
        delivered.get(timeout=0.2)
