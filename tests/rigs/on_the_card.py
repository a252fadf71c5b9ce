"""What the panel says of the processes that a played card holds."""

from pathlib import Path

from gpudeck.services.box.nvml import NvmlSource
from gpudeck.services.box.types import GIB, GpuProcess
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import busy, pair

TITLED = Path(__file__).with_name("titled.py")


def holders(fake_nvml: FakeNvml, pids: list[int]) -> list[GpuProcess]:
    """These processes as NVML's source tells them, each holding a gibibyte of the first card."""
    held = [GpuProcess(pid, "", GIB) for pid in sorted(pids)]
    fake_nvml(pair(), (busy(0, *held), busy(1)))
    source = NvmlSource()
    source.open()
    try:
        return list(source.read().readings[0].processes)
    finally:
        source.close()


def pids_told(log: str) -> dict[str, int]:
    """Title and pid of each process that a titled.py has told in its log."""
    told = (line.split() for line in log.splitlines() if line.startswith("VLLM::"))
    return {title: int(pid) for title, pid in told}
