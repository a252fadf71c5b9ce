"""A panel that stays open for days: memory does not grow with the sweeps."""

import gc
import os
import tracemalloc
from collections.abc import Iterator

import pytest

from gpudeck.services.box.nvml import NvmlSource
from gpudeck.services.box.types import GIB, Box, Demand, GpuProcess, Link
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import busy, card
from tests.services.box.nvml.conftest import Clock

CARDS = 2
SWEEPS = 3_000  # tests/bench/box_cost.py watches ten thousand, and the whole process
ALLOWED_BYTES = 64 << 10  # less than the smallest object a sweep would be


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_thousands_of_sweeps_leave_nothing_behind(
    fake_nvml: FakeNvml, source: NvmlSource, clock: Clock, traced: None
) -> None:
    box = Box(tuple(card(index) for index in range(CARDS)), (Link(0, 1, "NV4"),))
    holder = GpuProcess(os.getpid(), "", GIB)
    playing = fake_nvml(box, tuple(busy(index, holder) for index in range(CARDS)))
    playing.change({f"gpu.0.pcie_kbs.{way}": None for way in (0, 1)})
    source.open()

    def sweep(count: int) -> None:
        for number in range(count):
            clock.now += 1.0
            if number % 500 == 250:
                playing.change({"gpu.1.fault": "!GPU_IS_LOST"})
            elif number % 500 == 260:
                playing.change({"gpu.1.fault": None})
            source.read(Demand.ALL if number % 2 else Demand.NOTHING)

    sweep(1000)  # fills what is kept of the last events, and every cache
    gc.collect()
    objects, before = len(gc.get_objects()), tracemalloc.get_traced_memory()[0]
    sweep(SWEEPS)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    assert grown < ALLOWED_BYTES
    assert len(gc.get_objects()) - objects < SWEEPS / 10
