"""One card through NVML: its lasting facts, and its readings."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from gpudeck.services.box.nvml_faults import CardError, card_fault, never_answered
from gpudeck.services.box.processes import ProcessBook, ranks_in
from gpudeck.services.box.types import ComputeCapability, Gpu, GpuProcess, Pcie, Reading

T = TypeVar("T")

_CPU_WORDS = 128  # 64-bit words: 8192 CPUs, the most that Linux is built for
_NODE_WORDS = 16  # 1024 NUMA nodes

# nvmlClocksEventReasons, in words.  Idle (1) is no reason to look at a card.
_THROTTLE_REASONS = {
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
    0x100: "display clocks",
}


class NvmlCard:
    """Reads one card.  What it does not support reads None and is asked for once only."""

    def __init__(self, nvml: Any, index: int, handle: Any, book: ProcessBook) -> None:
        self.index = index
        self.handle = handle
        self._nvml = nvml
        self._book = book
        self._never = never_answered(nvml)
        self._unanswered: set[str] = set()
        self._failed: Exception | None = None
        self._answered = False

    def facts(self, host_memory_bytes: int) -> Gpu:
        """What lasts.  A card with unified memory has the host's.  Raises NVMLError or CardError."""
        nvml, handle = self._nvml, self.handle
        memory = self._memory()
        bus_width = self._ask("bus width", lambda: nvml.nvmlDeviceGetMemoryBusWidth(handle))
        clock_mhz = self._ask("memory clock", lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM))
        limit_mw = self._ask("power limit", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
        pci = self._ask("PCI", lambda: nvml.nvmlDeviceGetPciInfo(handle))
        return Gpu(
            index=self.index,
            name=nvml.nvmlDeviceGetName(handle),
            memory_bytes=memory.total if memory else host_memory_bytes,
            compute_capability=ComputeCapability(*nvml.nvmlDeviceGetCudaComputeCapability(handle)),
            uuid=self._ask("UUID", lambda: nvml.nvmlDeviceGetUUID(handle)),
            pcie=Pcie(
                bus=_text(pci.busId) if pci else None,
                gen=self._ask("PCIe generation", lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)),
                width=self._ask("PCIe width", lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)),
            ),
            numa=_ranges(self._ask("NUMA", lambda: nvml.nvmlDeviceGetMemoryAffinity(handle, _NODE_WORDS, 0))),
            cpu_affinity=_ranges(self._ask("CPU affinity", lambda: nvml.nvmlDeviceGetCpuAffinity(handle, _CPU_WORDS))),
            power_limit_w=None if limit_mw is None else limit_mw / 1000,
            memory_bandwidth_gbs=_bandwidth(bus_width, clock_mhz),
        )

    def read(self) -> Reading:
        """One reading.  Raises CardError where the card is lost, or answers nothing but errors."""
        nvml, handle = self._nvml, self.handle
        self._failed, self._answered = None, False
        memory = self._memory()
        busy = self._ask("utilization", lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
        reading = Reading(
            gpu=self.index,
            utilization_percent=busy.gpu if busy else None,
            memory_utilization_percent=busy.memory if busy else None,
            memory_used_bytes=memory.used if memory else None,
            memory_reserved_bytes=getattr(memory, "reserved", None),
            memory_free_bytes=memory.free if memory else None,
            temperature_c=self._temperature(),
            power_w=self._power(),
            sm_clock_mhz=self._ask("clock", lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            fan_percent=self._ask("fan", lambda: nvml.nvmlDeviceGetFanSpeed(handle)),
            pcie_gen=self._ask("PCIe now", lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)),
            pcie_width=self._ask("PCIe width now", lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle)),
            throttle_reasons=self._throttle_reasons(),
            processes=self._processes(),
        )
        self._refuse_silence()
        return reading

    def _refuse_silence(self) -> None:
        if self._failed is not None and not self._answered:
            raise CardError(f"GPU {self.index} answers nothing but errors: {self._failed}.")

    def _ask(self, name: str, call: Callable[[], T]) -> T | None:
        """The answer, or None; a call that is not supported is not made again.  Raises CardError."""
        if name in self._unanswered:
            return None
        try:
            answer = call()
        except self._never:
            self._unanswered.add(name)
            return None
        except self._nvml.NVMLError as error:
            fault = card_fault(self._nvml, self.index, error)
            if fault is not None:
                raise fault from error
            self._failed = error
            return None
        self._answered = True
        return answer

    def _memory(self) -> Any:
        """Version 2 counts the driver's reserve apart; drivers before 510 have version 1 alone."""
        nvml, handle = self._nvml, self.handle
        return self._ask("memory", lambda: nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)) or self._ask(
            "memory, version 1", lambda: nvml.nvmlDeviceGetMemoryInfo(handle)
        )

    def _temperature(self) -> int | None:
        nvml, handle, core = self._nvml, self.handle, self._nvml.NVML_TEMPERATURE_GPU
        celsius: int | None = self._ask("temperature", lambda: nvml.nvmlDeviceGetTemperature(handle, core))
        if celsius is None:
            # CUDA 14 removes the call above in favour of this one.
            celsius = self._ask("temperature, new", lambda: nvml.nvmlDeviceGetTemperatureV(handle, core))
        return celsius

    def _power(self) -> float | None:
        nvml, handle = self._nvml, self.handle
        milliwatts = self._ask("power", lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        if milliwatts is None:
            # The call above goes in CUDA 14; this field stays.
            milliwatts = self._ask("power, new", lambda: self._field(nvml.NVML_FI_DEV_POWER_INSTANT))
        return None if milliwatts is None else milliwatts / 1000

    def _field(self, number: int) -> int:
        """A field value, which carries an error of its own.  Raises NVMLError."""
        nvml = self._nvml
        field = nvml.nvmlDeviceGetFieldValues(self.handle, [number])[0]
        if field.nvmlReturn != nvml.NVML_SUCCESS:
            raise nvml.NVMLError(field.nvmlReturn)
        value: int = field.value.uiVal
        return value

    def _throttle_reasons(self) -> tuple[str, ...]:
        nvml, handle = self._nvml, self.handle
        bits = self._ask("event reasons", lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
        if bits is None:
            # The name that the same call had in drivers before 535.
            bits = self._ask("throttle reasons", lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        return tuple(words for bit, words in _THROTTLE_REASONS.items() if (bits or 0) & bit)

    def _processes(self) -> tuple[GpuProcess, ...]:
        nvml, handle = self._nvml, self.handle
        found: dict[int, int | None] = {}
        for name, call in (
            ("processes", nvml.nvmlDeviceGetComputeRunningProcesses),
            ("graphics", nvml.nvmlDeviceGetGraphicsRunningProcesses),
        ):
            for process in self._ask(name, lambda call=call: call(handle)) or ():  # type: ignore[misc]
                # One that computes and draws stands in both lists with the same memory.
                found[process.pid] = process.usedGpuMemory
        return tuple(self._process(pid, memory) for pid, memory in sorted(found.items()))

    def _process(self, pid: int, memory_bytes: int | None) -> GpuProcess:
        person = self._book.look_up(pid)
        title = person.title or self._told_name(pid)
        ranks = ranks_in(title)
        return GpuProcess(
            pid=pid,
            name=title,
            memory_bytes=memory_bytes,
            user=person.user,
            engine=person.engine,
            started_at=person.started_at,
            command=person.command,
            tp_rank=ranks.tp if ranks else None,
            pp_rank=ranks.pp if ranks else None,
            dp_rank=ranks.dp if ranks else None,
        )

    def _told_name(self, pid: int) -> str:
        """What NVML calls a process that this user or container can not see; "" where it does not know either."""
        try:
            return _text(self._nvml.nvmlSystemGetProcessName(pid))
        except self._nvml.NVMLError:
            return ""


def _bandwidth(bus_width_bits: int | None, clock_mhz: int | None) -> float | None:
    """GB/s of a memory that moves two words a clock, which holds for the clocks that NVML gives of GDDR and HBM."""
    if not bus_width_bits or not clock_mhz:
        return None
    return round(bus_width_bits / 8 * clock_mhz * 2 / 1000, 1)


def _ranges(words: Iterable[int] | None) -> str | None:
    """A bit set of 64-bit words as nvidia-smi prints it: "0-55,112-167"; "" for the empty set."""
    if words is None:
        return None
    bits = [place * 64 + bit for place, word in enumerate(words) for bit in range(64) if word and word >> bit & 1]
    runs: list[list[int]] = []
    for number in bits:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
