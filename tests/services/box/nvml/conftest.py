"""A source over the fake NVML, with a clock that the test moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudeck.services.box.nvml import NvmlSource
from tests.services.box.pci_bus import Bus


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cards_folder(tmp_path: Path) -> Path:
    """Stands for /proc/driver/nvidia/gpus."""
    return tmp_path / "gpus"


@pytest.fixture
def pci_bus(tmp_path: Path) -> Bus:
    return Bus(tmp_path)


@pytest.fixture
def source(clock: Clock, cards_folder: Path, pci_bus: Bus) -> Iterator[NvmlSource]:
    source = NvmlSource(clock, cards_folder=cards_folder, pci_devices=pci_bus.devices, patience=20.0)
    yield source
    source.close()
