"""A card's lasting facts, asked once when the box is opened."""

from collections.abc import Iterable
from typing import Any

from gpudeck.services.box.nvml.ask import Asker
from gpudeck.services.box.types import ComputeCapability, Gpu, Pcie

_CPU_WORDS = 128  # 64-bit words: 8192 CPUs, the most that Linux is built for
_NODE_WORDS = 16  # 1024 NUMA nodes


def read_facts(ask: Asker, host_memory_bytes: int) -> Gpu:
    """The card without its NVLinks.  One with unified memory has the host's.  Raises NVMLError or CardError."""
    nvml, handle = ask.nvml, ask.handle
    memory = read_memory(ask)
    memory_clock = ask("max memory clock", lambda handle: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM))
    bus_width = ask("memory bus width", nvml.nvmlDeviceGetMemoryBusWidth)
    power_range = ask("power range", nvml.nvmlDeviceGetPowerManagementLimitConstraints) or (None, None)
    return Gpu(
        index=ask.index,
        name=text(nvml.nvmlDeviceGetName(handle)),
        memory_bytes=memory.total if memory else host_memory_bytes,
        memory_reserved_bytes=getattr(memory, "reserved", None),
        unified_memory=memory is None and not ask.supports("memory") and not ask.supports("memory, version 1"),
        compute_capability=ComputeCapability(*nvml.nvmlDeviceGetCudaComputeCapability(handle)),
        uuid=ask("UUID", nvml.nvmlDeviceGetUUID),
        pcie=_pcie(ask),
        numa=_ranges(ask("NUMA", lambda handle: nvml.nvmlDeviceGetMemoryAffinity(handle, _NODE_WORDS, 0))),
        cpu_affinity=_ranges(ask("CPU affinity", lambda handle: nvml.nvmlDeviceGetCpuAffinity(handle, _CPU_WORDS))),
        power_limit_w=_watts(ask("power limit", nvml.nvmlDeviceGetEnforcedPowerLimit)),
        power_default_w=_watts(ask("default power limit", nvml.nvmlDeviceGetPowerManagementDefaultLimit)),
        power_min_w=_watts(power_range[0]),
        power_max_w=_watts(power_range[1]),
        memory_bandwidth_gbs=_bandwidth(bus_width, memory_clock),
        sm_clock_max_mhz=ask("max SM clock", lambda handle: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
        memory_clock_max_mhz=memory_clock,
        slowdown_c=_threshold(ask, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        shutdown_c=_threshold(ask, nvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
        memory_limit_c=_threshold(ask, nvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX),
    )


def read_memory(ask: Asker) -> Any:
    """Version 2 counts the driver's reserve apart; drivers before 510 have version 1 alone."""
    nvml = ask.nvml
    return ask("memory", lambda handle: nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)) or ask(
        "memory, version 1", nvml.nvmlDeviceGetMemoryInfo
    )


def text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _pcie(ask: Asker) -> Pcie:
    nvml = ask.nvml
    pci = ask("PCI", nvml.nvmlDeviceGetPciInfo)
    return Pcie(
        bus=text(pci.busId) if pci else None,
        gen=ask("PCIe generation", nvml.nvmlDeviceGetMaxPcieLinkGeneration),
        width=ask("PCIe width", nvml.nvmlDeviceGetMaxPcieLinkWidth),
    )


def _threshold(ask: Asker, which: int) -> int | None:
    celsius: int | None = ask(
        f"threshold {which}", lambda handle: ask.nvml.nvmlDeviceGetTemperatureThreshold(handle, which)
    )
    return celsius


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


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
