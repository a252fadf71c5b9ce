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

THROTTLE_REASONS = {
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
    0x100: "display clocks",
}
COMPUTE_MODES = ["default", "exclusive thread", "prohibited", "exclusive process"]
FABRIC_STATES = ["", "not started", "in progress", "completed"]
REMOTES = {"gpu": "gpu", "other": "gpu", "switch": "switch", "cpu": "npu"}
P2P_STATUSES = ["OK", "CNS", "GNS", "TNS", "DR", "NS", "U"]
MEMORY_TEMPERATURE = 82  # NVML_FI_DEV_MEMORY_TEMP

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
        "max_clock.1": gpu.sm_clock_max_mhz,
        "max_clock.2": clock,
        "pcie_max_gen": gpu.pcie.gen,
        "pcie_max_width": gpu.pcie.width,
        "cpus": gpu.cpu_affinity,
        "nodes": gpu.numa,
        "power_limit_mw": _thousandths(gpu.power_limit_w),
        "power_default_mw": _thousandths(gpu.power_default_w),
        "power_range_mw": None
        if gpu.power_min_w is None or gpu.power_max_w is None
        else f"{round(gpu.power_min_w * 1000)} {round(gpu.power_max_w * 1000)}",
        "threshold.0": gpu.shutdown_c,
        "threshold.1": gpu.slowdown_c,
        "threshold.2": gpu.memory_limit_c,
        "event_types": 0x1 | 0x2 | 0x8 | 0x100,
    }
    return _told(keys)


def _bus(gpu: Gpu) -> tuple[int | None, int | None]:
    """A memory bus in bits and MHz that has the card's bandwidth."""
    if gpu.memory_bandwidth_gbs is None:
        return None, gpu.memory_clock_max_mhz
    if gpu.memory_clock_max_mhz is not None:
        return round(gpu.memory_bandwidth_gbs * 1000 * 8 / gpu.memory_clock_max_mhz / 2), gpu.memory_clock_max_mhz
    width = 5120 if gpu.memory_bandwidth_gbs > 1100 else 384
    return width, round(gpu.memory_bandwidth_gbs * 1000 * 8 / width / 2)


def _load(gpu: Gpu, reading: Reading) -> Keys:
    used = reading.memory_used_bytes or 0
    reserved = reading.memory_reserved_bytes or gpu.memory_reserved_bytes or 0
    compute = reading.utilization_percent
    keys: dict[str, object] = {
        "memory": f"{gpu.memory_bytes} {used} {reserved}",
        "bar1": f"{256 * MIB} {2 * MIB}",
        "utilization": None if compute is None else f"{compute} {reading.memory_utilization_percent or 0}",
        "encoder": reading.encoder_percent,
        "decoder": reading.decoder_percent,
        "temperature.0": reading.temperature_c,
        f"field.{MEMORY_TEMPERATURE}": reading.memory_temperature_c,
        "power_mw": _thousandths(reading.power_w),
        "energy_mj": _thousandths(reading.energy_j),
        "clock.0": reading.sm_clock_mhz,
        "clock.1": reading.sm_clock_mhz,
        "clock.2": reading.memory_clock_mhz,
        "event_reasons": _event_reasons(reading),
        "pstate": reading.performance_state,
        "fan.0": reading.fan_percent,
        "fans": None if reading.fan_percent is None else 1,
        "pcie_gen": reading.pcie_gen,
        "pcie_width": reading.pcie_width,
        "pcie_kbs.0": None if reading.pcie_tx_bytes_s is None else round(reading.pcie_tx_bytes_s / 1000),
        "pcie_kbs.1": None if reading.pcie_rx_bytes_s is None else round(reading.pcie_rx_bytes_s / 1000),
        "pcie_replays": reading.pcie_replays,
        "mig_mode": None if reading.mig_enabled is None else f"{int(reading.mig_enabled)} {int(reading.mig_enabled)}",
        "processes": process_list(reading.processes) or None,
    }
    return _told(keys) | _health(reading)


def _event_reasons(reading: Reading) -> str | None:
    if reading.clock_idle is None:
        return None
    bits = sum(bit for bit, words in THROTTLE_REASONS.items() if words in reading.throttle_reasons)
    return hex(bits | int(reading.clock_idle))


def _health(reading: Reading) -> Keys:
    ecc, rows, modes = reading.ecc, reading.rows, reading.modes
    keys: dict[str, object] = {}
    if ecc is not None:
        keys |= {
            "ecc_mode": f"{int(bool(ecc.enabled))} {int(bool(ecc.enabled_after_reset))}",
            "ecc.0.0": ecc.volatile_corrected,
            "ecc.1.0": ecc.volatile_uncorrected,
            "ecc.0.1": ecc.aggregate_corrected,
            "ecc.1.1": ecc.aggregate_uncorrected,
        }
    if rows is not None and rows.remapped_corrected is not None:
        keys["remapped_rows"] = (
            f"{rows.remapped_corrected} {rows.remapped_uncorrected or 0} "
            f"{int(bool(rows.remapping_pending))} {int(bool(rows.remapping_failed))}"
        )
    elif rows is not None:
        keys |= {
            "field.29": rows.retired_single_bit,
            "field.30": rows.retired_double_bit,
            "field.31": None if rows.retirement_pending is None else int(rows.retirement_pending),
        }
    if modes is not None:
        keys |= {
            "compute_mode": None if modes.compute is None else COMPUTE_MODES.index(modes.compute),
            "persistence": None if modes.persistence is None else int(modes.persistence),
            "display_active": None if modes.display_active is None else int(modes.display_active),
            "fabric": None if modes.fabric is None else f"{FABRIC_STATES.index(modes.fabric)} 0 0 0",
        }
    for lane in reading.lanes:
        keys |= {
            _field(161, lane.lane): lane.replays,
            _field(162, lane.lane): lane.recoveries,
            _field(163, lane.lane): lane.crc_errors,
        }
    return _told(keys)


def _field(number: int, scope: int) -> str:
    return f"field.{number}.{scope}" if scope else f"field.{number}"


def _thousandths(value: float | None) -> int | None:
    return None if value is None else round(value * 1000)


def _told(keys: Mapping[str, object]) -> Keys:
    return {key: str(value) for key, value in keys.items() if value is not None}


def _lanes(box: Box, gpu: Gpu) -> Keys:
    """One key for each NVLink of a card: as the box tells them, else made up to give its links.

    Made up they lead to the peer itself, or to a switch where a card would need more of them than there are.
    """
    if gpu.nvlinks:
        return {"lanes": str(1 + max(link.lane for link in gpu.nvlinks))} | {
            f"lane.{link.lane}": (
                f"{'up' if link.up else 'down'} {REMOTES.get(link.remote or '', 'unknown')} {link.bus or '-'} "
                f"{link.version or 0}"
            )
            for link in gpu.nvlinks
        }
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
            access = box.access(first.index, second.index)
            reaches = "OK" if bonded or level < 50 else "CNS"
            told = (
                (access.read, access.write, access.nvlink, access.atomics)
                if access
                else (reaches, reaches, "OK" if bonded else "NS", "NS")
            )
            for what, word in enumerate(told):
                if word is not None:
                    keys[f"{pair}.p2p.{what}.{second.index}"] = str(P2P_STATUSES.index(word))
    return keys
