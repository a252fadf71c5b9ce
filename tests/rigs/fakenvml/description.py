"""A box as the fake NVML reads it: a file of `key value` lines.

The keys are named in src/*.c beside the functions that answer them.  A key that is missing answers NotSupported, a
value `!GPU_IS_LOST` (any NVML_ERROR_ name) that error.  `gpu.0.fault !…` fails every call on a card,
`gpu.0.delay_us 20000` slows every call on it, `gpu.0.utilization.delay_us 4000` that one.

What a box file says is taken apart into what a driver knows: NVLink lanes with the PCI ids of what they lead to, and
the common PCIe ancestor of each pair.  The kind of a link itself is nowhere in the file.
"""

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from gpudeck.services.box.types import Box, Gpu, GpuProcess, Reading

MIB = 1 << 20
ANCESTORS = {"PIX": 10, "PXB": 20, "PHB": 30, "NODE": 40, "SYS": 50}  # nvmlGpuTopologyLevel_t
MOST_LANES = 18  # of any card up to Blackwell; a card that seems to need more of them sits behind NVSwitch
GPUS_ON_A_SWITCH = 8  # one baseboard's

Keys = dict[str, str]


def describe(box: Box, readings: Iterable[Reading] = ()) -> Keys:
    """The description of a box; what a box file leaves out is filled in (bus ids in the order of the indices)."""
    positions = [gpu.index for gpu in box.gpus]
    assert positions == list(range(len(positions))), "NVML counts its cards from 0 without a gap"
    of_card = {reading.gpu: reading for reading in readings}
    keys: Keys = {"count": str(len(box.gpus))}
    if box.driver is not None:
        keys["driver"] = box.driver
    if box.cuda is not None:
        major, minor = box.cuda.split(".")
        keys["cuda"] = str(int(major) * 1000 + int(minor) * 10)
    for gpu in box.gpus:
        of_gpu = _card(gpu) | _load(gpu, of_card.get(gpu.index) or Reading(gpu.index)) | _lanes(box, gpu)
        keys |= {f"gpu.{gpu.index}.{key}": value for key, value in of_gpu.items()}
    return keys | _pairs(box)


def write(path: Path, keys: Mapping[str, str]) -> None:
    """Put a description in place at once, since the library may be reading."""
    new = path.with_name(path.name + ".new")
    new.write_text("".join(f"{key} {value}\n" for key, value in keys.items()), encoding="utf-8")
    # The library knows a new file by its time stamp; the kernel's own is too coarse for two writes in a row.
    stamp = time.time_ns()
    os.utime(new, ns=(stamp, stamp))
    new.replace(path)


def bus_id(gpu: Gpu) -> str:
    return gpu.pcie.bus or f"00000000:{0x10 + 4 * gpu.index:02X}:00.0"


def uuid(gpu: Gpu) -> str:
    return gpu.uuid or f"GPU-{gpu.index:08x}-fa4e-4b0c-8000-{gpu.index:012x}"


def process_list(processes: Iterable[GpuProcess]) -> str:
    """The value of `processes` and `graphics`."""
    return " ".join(
        f"{process.pid}:{'-' if process.memory_bytes is None else process.memory_bytes}" for process in processes
    )


def _card(gpu: Gpu) -> Keys:
    width, clock = _bus(gpu)
    keys: dict[str, object] = {
        "name": gpu.name,
        "uuid": uuid(gpu),
        "serial": 1_320_000_000_000 + gpu.index,
        "minor": gpu.index,
        "pci": bus_id(gpu),
        "compute": f"{gpu.compute_capability.major} {gpu.compute_capability.minor}",
        "bus_width": width,
        "max_clock.0": 1980,
        "max_clock.1": 1980,
        "max_clock.2": clock,
        "pcie_max_gen": gpu.pcie.gen,
        "pcie_max_width": gpu.pcie.width,
        "cpus": gpu.cpu_affinity,
        "nodes": gpu.numa,
        "power_limit_mw": None if gpu.power_limit_w is None else round(gpu.power_limit_w * 1000),
        "event_types": 1 | 2 | 8,
        "mig_mode": "0 0" if gpu.compute_capability.major >= 8 else None,
        "pstate": 0,
        "persistence": 1,
        "compute_mode": 0,
    }
    return {key: str(value) for key, value in keys.items() if value is not None}


def _bus(gpu: Gpu) -> tuple[int | None, int | None]:
    """A memory bus in bits and MHz that has the card's bandwidth."""
    if gpu.memory_bandwidth_gbs is None:
        return None, None
    width = 5120 if gpu.memory_bandwidth_gbs > 1100 else 384
    return width, round(gpu.memory_bandwidth_gbs * 1000 * 8 / width / 2)


def _load(gpu: Gpu, reading: Reading) -> Keys:
    used = reading.memory_used_bytes or 0
    reserved = reading.memory_reserved_bytes or 0
    compute = reading.utilization_percent
    keys: dict[str, object] = {
        "memory": f"{gpu.memory_bytes} {used} {reserved}",
        "bar1": f"{256 * MIB} {2 * MIB}",
        "utilization": None if compute is None else f"{compute} {reading.memory_utilization_percent or 0}",
        "temperature.0": reading.temperature_c,
        "power_mw": None if reading.power_w is None else round(reading.power_w * 1000),
        "clock.0": reading.sm_clock_mhz,
        "clock.1": reading.sm_clock_mhz,
        "fan.0": reading.fan_percent,
        "fans": None if reading.fan_percent is None else 1,
        "pcie_gen": reading.pcie_gen,
        "pcie_width": reading.pcie_width,
        "event_reasons": "0x0",
        "processes": process_list(reading.processes) or None,
    }
    return {key: str(value) for key, value in keys.items() if value is not None}


def _lanes(box: Box, gpu: Gpu) -> Keys:
    """One key for each NVLink lane of a card: to the peer itself, or to a switch where the lanes would not suffice."""
    bonds = {other.index: _bond(box, gpu, other) for other in box.gpus if _bond(box, gpu, other)}
    if not bonds:
        return {}
    if any(_needed_lanes(box, other) > MOST_LANES for other in box.gpus):
        board = gpu.index // GPUS_ON_A_SWITCH
        remotes = [f"switch 00000000:{0xC0 + board * 8 + lane % 6:02X}:00.0" for lane in range(max(bonds.values()))]
    else:
        remotes = [f"gpu {bus_id(box.gpus[other])}" for other, bond in bonds.items() for _ in range(bond)]
    version = {7: 2, 8: 3, 9: 4}.get(gpu.compute_capability.major, 5)
    return {"lanes": str(len(remotes))} | {
        f"lane.{lane}": f"up {remote} {version}" for lane, remote in enumerate(remotes)
    }


def _needed_lanes(box: Box, gpu: Gpu) -> int:
    return sum(_bond(box, gpu, other) for other in box.gpus)


def _bond(box: Box, gpu: Gpu, other: Gpu) -> int:
    """How many lanes join two cards."""
    kind = box.link(gpu.index, other.index)
    return int(kind[2:]) if kind.startswith("NV") else 0


def _pairs(box: Box) -> Keys:
    keys: Keys = {}
    for first in box.gpus:
        for second in box.gpus[first.index + 1 :]:
            kind = box.link(first.index, second.index)
            bonded = kind.startswith("NV")
            # Beneath an NVLink the cards have a PCIe ancestor too, which must not win over it.
            level = (40 if first.numa == second.numa else 50) if bonded else ANCESTORS[kind]
            pair = f"gpu.{first.index}"
            keys[f"{pair}.ancestor.{second.index}"] = str(level)
            keys[f"{pair}.p2p.2.{second.index}"] = "0" if bonded else "5"
            keys[f"{pair}.p2p.0.{second.index}"] = "0" if bonded or level < 50 else "1"
    return keys
