"""Who is on a card: its processes, and its MIG devices."""

from typing import Any

from gpudeck.services.box.nvml.ask import Asker
from gpudeck.services.box.nvml.facts import text
from gpudeck.services.box.processes import ProcessBook, ranks_in
from gpudeck.services.box.types import GpuProcess, MigInstance

_NO_INSTANCE = 0xFFFFFFFF


class Holders:
    """Asks a card for its processes and its MIG devices."""

    def __init__(self, ask: Asker, book: ProcessBook) -> None:
        self._ask = ask
        self._book = book

    @property
    def hidden(self) -> bool:
        """Whether the driver does not tell who is on the card."""
        return not any(self._ask.supports(name) for name, _ in self._lists(compute=True))

    def processes(self) -> tuple[GpuProcess, ...]:
        """Those that compute and those that draw, each once."""
        found: dict[int, Any] = {}
        for compute in (True, False):
            for name, call in self._lists(compute):
                told = self._ask(name, call)
                if told is not None:
                    # One that computes and draws stands in both lists with the same memory.
                    found |= {process.pid: process for process in told}
                    break
        return tuple(self._process(found[pid]) for pid in sorted(found))

    def mig_devices(self) -> tuple[MigInstance, ...]:
        """The MIG devices that are set up, in the order of their numbers."""
        nvml = self._ask.nvml
        devices = []
        for number in range(self._ask("MIG devices", nvml.nvmlDeviceGetMaxMigDeviceCount) or 0):
            try:
                handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(self._ask.handle, number)
                devices.append(_mig_device(nvml, handle))
            except nvml.NVMLError:
                continue  # none of that number is set up
        return tuple(devices)

    def _lists(self, compute: bool) -> tuple[tuple[str, Any], ...]:
        """The calls that list processes: the usual one, the one that CUDA 14 keeps, that of drivers before 510."""
        nvml = self._ask.nvml
        mode = 0 if compute else 1

        def details(handle: Any) -> Any:
            return nvml.nvmlDeviceGetRunningProcessDetailList(handle, nvml.nvmlProcessDetailList_v1, mode)

        if compute:
            return (
                ("processes", nvml.nvmlDeviceGetComputeRunningProcesses_v3),
                ("processes, details", details),
                ("processes, version 2", nvml.nvmlDeviceGetComputeRunningProcesses_v2),
            )
        return (
            ("graphics", nvml.nvmlDeviceGetGraphicsRunningProcesses_v3),
            ("graphics, details", details),
            ("graphics, version 2", nvml.nvmlDeviceGetGraphicsRunningProcesses_v2),
        )

    def _process(self, told: Any) -> GpuProcess:
        person = self._book.look_up(told.pid)
        title = person.title or self._told_name(told.pid)
        ranks = ranks_in(title)
        instance = getattr(told, "gpuInstanceId", _NO_INSTANCE)
        return GpuProcess(
            pid=told.pid,
            name=title,
            memory_bytes=told.usedGpuMemory,
            user=person.user,
            engine=person.engine,
            started_at=person.started_at,
            command=person.command,
            tp_rank=ranks.tp if ranks else None,
            pp_rank=ranks.pp if ranks else None,
            dp_rank=ranks.dp if ranks else None,
            container=person.container,
            mig=None if instance == _NO_INSTANCE else instance,
        )

    def _told_name(self, pid: int) -> str:
        """What NVML calls a process that this user or container can not see; "" where it does not know either."""
        try:
            return text(self._ask.nvml.nvmlSystemGetProcessName(pid))
        except self._ask.nvml.NVMLError:
            return ""


def _mig_device(nvml: Any, handle: Any) -> MigInstance:
    """Raises NVMLError where it has no instance; what else it does not tell is None."""

    def told(call: Any) -> Any:
        try:
            return call(handle)
        except nvml.NVMLError:
            return None

    name, memory = told(nvml.nvmlDeviceGetName), told(nvml.nvmlDeviceGetMemoryInfo)
    attributes = told(nvml.nvmlDeviceGetAttributes_v2)
    return MigInstance(
        gpu_instance=nvml.nvmlDeviceGetGpuInstanceId(handle),
        compute_instance=told(nvml.nvmlDeviceGetComputeInstanceId),
        # "NVIDIA A100-SXM4-40GB MIG 3g.20gb": the card's own name stands beside it already.
        name="MIG" + name.rpartition("MIG")[2] if name else None,
        uuid=told(nvml.nvmlDeviceGetUUID),
        memory_bytes=memory.total if memory else None,
        memory_used_bytes=memory.used if memory else None,
        multiprocessors=attributes.multiprocessorCount if attributes else None,
    )
