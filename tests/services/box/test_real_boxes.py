"""Boxes from public reports, played by the fake NVML: the real pynvml and gpudeck's link rules must give their matrix.

`*.topo.txt` is the matrix as nvidia-smi printed it (network cards and legend included, oddities kept on purpose),
`*.json` the same box as a box file.
"""

import re
from pathlib import Path

import pytest

from gpudeck.services.box.boxfile import load_box_file
from gpudeck.services.box.nvml import NvmlSource
from gpudeck.services.box.types import Box
from tests.rigs.fakenvml.fixtures import FakeNvml

BOXES = Path(__file__).parents[2] / "data" / "boxes"
ALL = sorted(path.stem for path in BOXES.glob("*.json"))
WITH_MATRIX = [name for name in ALL if (BOXES / f"{name}.topo.txt").exists()]


def printed_cells(name: str, gpus: int) -> list[list[str]]:
    """The cells between GPUs of a report; a driver before 384 says SOC for SYS."""
    lines = (BOXES / f"{name}.topo.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if re.match(r"\s*GPU\d+\s.*\bX\b", line)]
    return [
        ["SYS" if cell == "SOC" else cell for cell in row[1 : gpus + 1]] for row in rows[:gpus]
    ]  # P2P tables follow


def opened(box: Box, fake_nvml: FakeNvml) -> Box:
    fake_nvml(box)
    source = NvmlSource()
    try:
        return source.open()
    finally:
        source.close()


def test_there_are_boxes_with_and_without_a_matrix() -> None:
    assert len(ALL) == 38
    assert len(WITH_MATRIX) == 30


@pytest.mark.parametrize("name", WITH_MATRIX)
def test_the_matrix_is_cell_for_cell_the_printed_one(name: str, fake_nvml: FakeNvml) -> None:
    box = opened(load_box_file(BOXES / f"{name}.json").box, fake_nvml)
    indices = [gpu.index for gpu in box.gpus]
    assert [[box.link(a, b) for b in indices] for a in indices] == printed_cells(name, len(indices))


@pytest.mark.parametrize("name", ALL)
def test_every_box_is_read_as_it_is_described(name: str, fake_nvml: FakeNvml) -> None:
    told = load_box_file(BOXES / f"{name}.json").box
    read = opened(told, fake_nvml)
    for expected, gpu in zip(told.gpus, read.gpus, strict=True):
        assert (gpu.index, gpu.name, gpu.memory_bytes) == (expected.index, expected.name, expected.memory_bytes)
        assert gpu.compute_capability == expected.compute_capability
        assert gpu.numa == expected.numa
        assert expected.pcie.bus in (None, gpu.pcie.bus)
        # One report's old driver wrote a single CPU as a range.
        assert gpu.cpu_affinity == ("0" if expected.cpu_affinity == "0-0" else expected.cpu_affinity)
    assert read.driver == told.driver
    assert [read.link(a.index, b.index) for a in read.gpus for b in read.gpus] == [
        told.link(a.index, b.index) for a in told.gpus for b in told.gpus
    ]
