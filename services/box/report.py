"""A box told to programs: the JSON documents of `gpudeck box` and `gpudeck topo`, and what they and the text share."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timezone
from typing import Any

from gpudeck.services.box.types import (
    Accelerator,
    Box,
    BoxEvent,
    Ecc,
    Gpu,
    GpuProcess,
    LaneReading,
    MigInstance,
    Modes,
    NvLink,
    PeerAccess,
    Reading,
    Rows,
    Snapshot,
)


def box_document(snapshot: Snapshot) -> dict[str, Any]:
    """The document of `gpudeck box --json`; null stands for what a card does not report.  Its shape is BOX_DOCUMENT."""
    box = snapshot.box
    return {
        "name": box.name,
        "driver": box.driver,
        "cuda": box.cuda,
        "host_memory_bytes": box.host_memory_bytes,
        "at": _time(snapshot.at),
        "gpus": [_gpu_document(gpu, snapshot.reading(gpu.index) or Reading(gpu.index), snapshot) for gpu in box.gpus],
        "links": [
            {"a": first.index, "b": second.index, "kind": box.link(first.index, second.index)}
            for place, first in enumerate(box.gpus)
            for second in box.gpus[place + 1 :]
        ],
        "topology_known": box.topology_known,
        "peer_access": [_every_field(pair) for pair in box.peer_access],
        "events": [
            {**_every_field(event), "at": _time(event.at), "severity": event.severity.value}
            for event in snapshot.events
        ],
        "accelerators": [_every_field(other) for other in box.accelerators],
        "faults": list(box.faults),
    }


def topo_document(box: Box) -> dict[str, Any]:
    """The document of `gpudeck topo --json`: indices, and the matrix in their order."""
    indices = [gpu.index for gpu in box.gpus]
    return {"gpus": indices, "matrix": [[box.link(a, b) for b in indices] for a in indices]}


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


def _gpu_document(gpu: Gpu, reading: Reading, snapshot: Snapshot) -> dict[str, Any]:
    everyone = [process for one in snapshot.readings for process in one.processes]
    reasons_told = bool(reading.throttle_reasons) or reading.clock_idle is not None
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "compute_capability": str(gpu.compute_capability),
        "fault": reading.fault,
        "age_seconds": round(snapshot.age_of(reading, snapshot.at), 3),
        "memory_total_bytes": gpu.memory_bytes,
        "memory_used_bytes": reading.memory_used_bytes,
        "memory_reserved_bytes": _first(reading.memory_reserved_bytes, gpu.memory_reserved_bytes),
        "memory_free_bytes": reading.memory_free_bytes,
        "memory_bandwidth_gbs": gpu.memory_bandwidth_gbs,
        "unified_memory": gpu.unified_memory,
        "gpu_utilization_percent": reading.utilization_percent,
        "memory_utilization_percent": reading.memory_utilization_percent,
        "encoder_percent": reading.encoder_percent,
        "decoder_percent": reading.decoder_percent,
        "power_watts": reading.power_w,
        "power_limit_watts": _first(reading.power_limit_w, gpu.power_limit_w),
        "power_default_watts": gpu.power_default_w,
        "energy_joules": reading.energy_j,
        "temperature_celsius": reading.temperature_c,
        "memory_temperature_celsius": reading.memory_temperature_c,
        "slowdown_celsius": gpu.slowdown_c,
        "shutdown_celsius": gpu.shutdown_c,
        "memory_limit_celsius": gpu.memory_limit_c,
        "sm_clock_mhz": reading.sm_clock_mhz,
        "sm_clock_max_mhz": gpu.sm_clock_max_mhz,
        "memory_clock_mhz": reading.memory_clock_mhz,
        "memory_clock_max_mhz": gpu.memory_clock_max_mhz,
        "clock_idle": reading.clock_idle,
        "throttle_reasons": list(reading.throttle_reasons) if reasons_told else None,
        "performance_state": reading.performance_state,
        "fan_percent": reading.fan_percent,
        "pcie": {
            "bus": gpu.pcie.bus,
            "gen": reading.pcie_gen,
            "width": reading.pcie_width,
            "max_gen": gpu.pcie.gen,
            "max_width": gpu.pcie.width,
            "tx_bytes_s": reading.pcie_tx_bytes_s,
            "rx_bytes_s": reading.pcie_rx_bytes_s,
            "replays": reading.pcie_replays,
        },
        "nvlink": {
            "tx_bytes_s": reading.nvlink_tx_bytes_s,
            "rx_bytes_s": reading.nvlink_rx_bytes_s,
            "links": _lane_documents(gpu, reading),
        },
        "numa": gpu.numa,
        "cpu_affinity": gpu.cpu_affinity,
        "ecc": _every_field(reading.ecc) if reading.ecc else None,
        "rows": _every_field(reading.rows) if reading.rows else None,
        "modes": _every_field(reading.modes) if reading.modes else None,
        "mig": {"enabled": reading.mig_enabled, "instances": [_every_field(instance) for instance in reading.mig]},
        "processes_hidden": reading.processes_hidden,
        "processes": [_process_document(process, everyone) for process in reading.processes],
    }


def _lane_documents(gpu: Gpu, reading: Reading) -> list[dict[str, Any]]:
    of_lane = {lane.lane: lane for lane in reading.lanes}
    return [_every_field(of_lane.get(link.lane) or LaneReading(link.lane)) | _every_field(link) for link in gpu.nvlinks]


def _process_document(process: GpuProcess, everyone: list[GpuProcess]) -> dict[str, Any]:
    same_engine = [other for other in everyone if other.engine == process.engine]
    return {
        "pid": process.pid,
        "name": process.name,
        "command": process.command,
        "user": process.user,
        "started_at": None if process.started_at is None else _time(process.started_at),
        "memory_bytes": process.memory_bytes,
        "mig": process.mig,
        "container": process.container,
        "engine": process.engine,
        "rank": global_rank(process, same_engine),
        "tp_rank": process.tp_rank,
        "pp_rank": process.pp_rank,
        "dp_rank": process.dp_rank,
    }


def _every_field(
    value: Accelerator | NvLink | LaneReading | Ecc | Rows | Modes | MigInstance | PeerAccess | BoxEvent,
) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _first(told: Any, otherwise: Any) -> Any:
    return otherwise if told is None else told


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds")
