"""A box told to people and to programs: the text and the JSON documents of `gpudeck box` and `gpudeck topo`."""

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from gpudeck.services.box.types import GIB, Box, Gpu, GpuProcess, Reading, Snapshot
from gpudeck.services.text import printable

NOT_KNOWN = "n/a"

# What the link kinds mean, in the order of nvidia-smi's own legend.
LEGEND = (
    ("X", "the card itself"),
    ("SYS", "across the interconnect between NUMA nodes (two sockets)"),
    ("NODE", "across PCIe host bridges within one NUMA node"),
    ("PHB", "through one PCIe host bridge (typically the CPU)"),
    ("PXB", "through several PCIe switches, not through a host bridge"),
    ("PIX", "through one PCIe switch at most"),
    ("NV#", "a bond of # NVLinks"),
)


def box_document(snapshot: Snapshot) -> dict[str, Any]:
    """The document of `gpudeck box --json`; null stands for what a card does not report.  Its shape is BOX_DOCUMENT."""
    box = snapshot.box
    return {
        "name": box.name,
        "driver": box.driver,
        "cuda": box.cuda,
        "host_memory_bytes": box.host_memory_bytes,
        "at": datetime.fromtimestamp(snapshot.at, timezone.utc).isoformat(timespec="milliseconds"),
        "gpus": [
            _gpu_document(gpu, snapshot.reading(gpu.index) or Reading(gpu.index), snapshot.readings) for gpu in box.gpus
        ],
        "links": [
            {"a": first.index, "b": second.index, "kind": box.link(first.index, second.index)}
            for place, first in enumerate(box.gpus)
            for second in box.gpus[place + 1 :]
        ],
        "faults": list(box.faults),
    }


def topo_document(box: Box) -> dict[str, Any]:
    """The document of `gpudeck topo --json`: indices, and the matrix in their order."""
    indices = [gpu.index for gpu in box.gpus]
    return {"gpus": indices, "matrix": [[box.link(a, b) for b in indices] for a in indices]}


def topo_text(box: Box) -> str:
    """The matrix as `nvidia-smi topo -m` prints it, without network cards: columns parted by tabs, then the legend."""
    indices = [gpu.index for gpu in box.gpus]
    table = [["", *(f"GPU{index}" for index in indices), "CPU Affinity", "NUMA Affinity"]]
    for gpu in box.gpus:
        cells = [" X " if gpu.index == other else box.link(gpu.index, other) for other in indices]
        table.append([f"GPU{gpu.index}", *cells, _affinity(gpu.cpu_affinity), _affinity(gpu.numa)])
    legend = [f"  {kind:<4} = {meaning}" for kind, meaning in LEGEND]
    return "\n".join([*_tabbed(table), "", "Legend:", "", *legend]) + "\n"


def box_text(snapshot: Snapshot) -> str:
    """The box as `gpudeck box` prints it: one line a card, then who is on the cards."""
    box = snapshot.box
    head = [box.name or "box", _count(len(box.gpus), "GPU")]
    head += [f"driver {box.driver}"] if box.driver else []
    head += [f"CUDA {box.cuda}"] if box.cuda else []
    lines = [" · ".join(printable(word) for word in head), ""]
    titles = [
        "GPU",
        "name",
        "arch",
        "util",
        "memory GiB",
        "temp",
        "power W",
        "SM MHz",
        "PCIe",
        "NVLink",
        "throttled by",
    ]
    rows, faults, people = [titles], list(box.faults), [["GPU", "pid", "user", "memory GiB", "process"]]
    for gpu in box.gpus:
        reading = snapshot.reading(gpu.index) or Reading(gpu.index)
        rows.append(_gpu_row(box, gpu, reading))
        faults += [reading.fault] if reading.fault else []
        people += [_process_row(gpu, process) for process in reading.processes]
    lines += _aligned(rows)
    lines += ["", *_aligned(people)] if len(people) > 1 else ["", "No process is on the cards."]
    lines += ["", *(printable(fault) for fault in faults)] if faults else []
    return "\n".join(lines) + "\n"


def global_rank(process: GpuProcess, same_engine: Sequence[GpuProcess]) -> int | None:
    """The rank of a vLLM worker: (copy × stages + stage) × TP size + place within the stage.

    Titles do not tell sizes: they are taken from the highest ranks among the processes of the engine (`same_engine`),
    which needs the engine to be known unless the rank can be told without them.
    """
    if process.tp_rank is None or process.pp_rank is None:
        return None
    copy = process.dp_rank or 0
    if process.pp_rank == 0 and copy == 0:
        return process.tp_rank
    if process.engine is None:
        return None
    tp_size = 1 + max(other.tp_rank or 0 for other in same_engine)
    stages = 1 + max(other.pp_rank or 0 for other in same_engine)
    return (copy * stages + process.pp_rank) * tp_size + process.tp_rank


def nvlink_peers(box: Box, gpu: Gpu) -> str:
    """Whom a card reaches over NVLink: "NV12 → 2", "NV18 → all", "NV2 → 1,4 NV1 → 2"; "" for nobody."""
    peers: dict[str, list[int]] = {}
    for other in box.gpus:
        kind = box.link(gpu.index, other.index)
        if kind.startswith("NV"):
            peers.setdefault(kind, []).append(other.index)
    everyone = 2 < len(box.gpus) == 1 + max(map(len, peers.values()), default=0)
    return " ".join(f"{kind} → {'all' if everyone else ','.join(map(str, of))}" for kind, of in peers.items())


def _gpu_document(gpu: Gpu, reading: Reading, readings: tuple[Reading, ...]) -> dict[str, Any]:
    everyone = [process for one in readings for process in one.processes]
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "compute_capability": str(gpu.compute_capability),
        "fault": reading.fault,
        "memory_total_bytes": gpu.memory_bytes,
        "memory_used_bytes": reading.memory_used_bytes,
        "memory_reserved_bytes": reading.memory_reserved_bytes,
        "memory_free_bytes": reading.memory_free_bytes,
        "memory_bandwidth_gbs": gpu.memory_bandwidth_gbs,
        "gpu_utilization_percent": reading.utilization_percent,
        "memory_utilization_percent": reading.memory_utilization_percent,
        "power_watts": reading.power_w,
        "power_limit_watts": gpu.power_limit_w,
        "temperature_celsius": reading.temperature_c,
        "sm_clock_mhz": reading.sm_clock_mhz,
        "fan_percent": reading.fan_percent,
        "pcie": {
            "bus": gpu.pcie.bus,
            "gen": reading.pcie_gen,
            "width": reading.pcie_width,
            "max_gen": gpu.pcie.gen,
            "max_width": gpu.pcie.width,
        },
        "numa": gpu.numa,
        "cpu_affinity": gpu.cpu_affinity,
        "throttle_reasons": list(reading.throttle_reasons),
        "processes": [_process_document(process, everyone) for process in reading.processes],
    }


def _process_document(process: GpuProcess, everyone: list[GpuProcess]) -> dict[str, Any]:
    same_engine = [other for other in everyone if other.engine == process.engine]
    return {
        "pid": process.pid,
        "name": process.name,
        "user": process.user,
        "memory_bytes": process.memory_bytes,
        "engine": process.engine,
        "rank": global_rank(process, same_engine),
        "tp_rank": process.tp_rank,
        "pp_rank": process.pp_rank,
        "dp_rank": process.dp_rank,
    }


def _gpu_row(box: Box, gpu: Gpu, reading: Reading) -> list[str]:
    return [
        str(gpu.index),
        printable(gpu.name),
        str(gpu.compute_capability),
        _told(reading.utilization_percent, "{}%"),
        f"{_gib(reading.memory_used_bytes)} of {_gib(gpu.memory_bytes)}",
        _told(reading.temperature_c, "{}°C"),
        f"{_told(reading.power_w, '{:.0f}')} of {_told(gpu.power_limit_w, '{:.0f}')}",
        _told(reading.sm_clock_mhz),
        f"{_told(reading.pcie_gen)}×{_told(reading.pcie_width)}",
        nvlink_peers(box, gpu),
        "fault, see below" if reading.fault else ", ".join(printable(reason) for reason in reading.throttle_reasons),
    ]


def _process_row(gpu: Gpu, process: GpuProcess) -> list[str]:
    owner = [process.engine] if process.engine else []
    name = " · ".join(printable(word) for word in [*owner, process.name or NOT_KNOWN])
    return [str(gpu.index), str(process.pid), printable(process.user or NOT_KNOWN), _gib(process.memory_bytes), name]


def _affinity(text: str | None) -> str:
    return "N/A" if text is None else text


def _told(value: float | None, pattern: str = "{}") -> str:
    return NOT_KNOWN if value is None else pattern.format(value)


def _gib(count: int | None) -> str:
    return NOT_KNOWN if count is None else f"{count / GIB:.1f}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _aligned(rows: list[list[str]]) -> list[str]:
    """Columns wide enough for their longest cell; the first row are titles."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _tabbed(rows: list[list[str]]) -> list[str]:
    """Columns aligned by tabs, as nvidia-smi's are."""
    stops = [max(len(row[column]) // 8 + 1 for row in rows) for column in range(len(rows[0]))]
    return [
        "".join(cell + "\t" * (stop - len(cell) // 8) for cell, stop in zip(row, stops, strict=True)).rstrip("\t")
        for row in rows
    ]
