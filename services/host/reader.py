"""The machine read through psutil and the kernel's own files."""

import os
import resource
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gpudeck.services.box.accelerators import find_accelerators
from gpudeck.services.box.types import Accelerator
from gpudeck.services.host.disks import Disks
from gpudeck.services.host.types import SHM, HostReading, Keeps, Shm


class HostReader:
    """Reads the machine; shares and rates are over the time since the reading before.  Used by one thread at a time."""

    def __init__(self, folders: Sequence[tuple[Path, Keeps]]) -> None:
        self._disks = Disks(folders)
        self._cores: int | None = None
        self._accelerators: tuple[Accelerator, ...] | None = None
        self._busy: tuple[float, float] | None = None  # CPU seconds, busy and all, at the reading before
        self._swapped: tuple[float, int] | None = None  # when, and bytes in and out since the machine's start

    def read(self) -> HostReading:
        import psutil

        if self._accelerators is None:
            self._cores = psutil.cpu_count(logical=False)
            self._accelerators = find_accelerators()
        usable = len(os.sched_getaffinity(0))
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        return HostReading(
            at=time.time(),
            cores=None if self._cores is None else min(self._cores, usable),
            threads=usable,
            cpu_share=self._cpu_share(),
            load=_load(),
            memory_total_bytes=memory.total,
            memory_available_bytes=memory.available,
            swap_total_bytes=swap.total,
            swap_used_bytes=swap.used,
            swap_rate=self._swap_rate(swap.sin + swap.sout),
            shm=_shm(),
            open_files=_open_files(),
            disks=self._disks.read(),
            accelerators=self._accelerators,
        )

    def _cpu_share(self) -> float | None:
        """Waiting for the disk is not busy: weights are read while the CPUs are free."""
        import psutil

        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        # The kernel counts guests' time within user and nice as well.
        everything = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        now, before = (everything - idle, everything), self._busy
        self._busy = now
        if before is None or now[1] <= before[1]:
            return None
        return min(max((now[0] - before[0]) / (now[1] - before[1]), 0.0), 1.0)

    def _swap_rate(self, swapped: int) -> float | None:
        now, before = (time.monotonic(), swapped), self._swapped
        self._swapped = now
        if before is None or now[0] <= before[0]:
            return None
        return max(now[1] - before[1], 0) / (now[0] - before[0])


def _load() -> tuple[float, float, float] | None:
    with suppress(OSError):
        return os.getloadavg()
    return None


def _shm() -> Shm | None:
    try:
        told = os.statvfs(SHM)
    except OSError:
        return None
    return Shm(told.f_frsize * told.f_blocks, told.f_frsize * told.f_bavail)


def _open_files() -> int | None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if hard == resource.RLIM_INFINITY else hard
