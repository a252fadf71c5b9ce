"""A machine that lacks nothing, and the same with something changed."""

from dataclasses import replace
from typing import Any

from gpudeck.services.box.types import GIB
from gpudeck.services.host.types import Disk, HostReading, Keeps, Shm

FINE = HostReading(
    at=1.7e9,
    cores=64,
    threads=128,
    cpu_share=0.2,
    load=(20.0, 20.0, 20.0),
    memory_total_bytes=512 * GIB,
    memory_available_bytes=400 * GIB,
    swap_total_bytes=8 * GIB,
    swap_used_bytes=1 * GIB,
    swap_rate=0.0,
    shm=Shm(256 * GIB, 250 * GIB),
    open_files=1 << 20,
    disks=(
        Disk("/data/models", Keeps.MODELS, 4096 * GIB, 900 * GIB),
        Disk("/home/ada/.cache/vllm", Keeps.VLLM_CACHE, 100 * GIB, 50 * GIB),
    ),
)


def host(**changes: Any) -> HostReading:
    return replace(FINE, **changes)
