"""A box and its readings as the document of a box file, and back.

The documents that come in have the shape BOX_FILE already; what remains to be refused here are contradictions between
places.  ShapeError names both.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpudeck.services.box.frames import Frame
from gpudeck.services.box.readingdocument import fields_document, frame_document, frame_from, processes_from
from gpudeck.services.box.shape import ShapeError, shown
from gpudeck.services.box.types import (
    MIB,
    Accelerator,
    Box,
    ComputeCapability,
    Gpu,
    Link,
    NvLink,
    Pcie,
    PeerAccess,
    Reading,
)

Document = dict[str, Any]

# What a card's key of the same name holds as it is.
_PLAIN = (
    "index",
    "name",
    "uuid",
    "cpu_affinity",
    "power_limit_w",
    "power_default_w",
    "power_min_w",
    "power_max_w",
    "memory_bandwidth_gbs",
    "unified_memory",
    "sm_clock_max_mhz",
    "memory_clock_max_mhz",
    "slowdown_c",
    "shutdown_c",
    "memory_limit_c",
)


def box_from(document: Document, where: str = "") -> Box:
    """The box of a document that stands at `where`; its cards in the order of their indices."""
    gpus = tuple(sorted((_gpu_from(entry) for entry in document["gpus"]), key=lambda gpu: gpu.index))
    indices = {gpu.index for gpu in gpus}
    _refuse_repeats(f"{where}gpus", "index", document, lambda gpu: gpu["index"])
    _refuse_repeats(f"{where}gpus", "uuid", document, lambda gpu: gpu.get("uuid"))
    _refuse_repeats(f"{where}gpus", "pcie.bus", document, lambda gpu: _bus_id(gpu.get("pcie", {}).get("bus")))
    _refuse_wrong_pairs(f"{where}links", document.get("links", []), indices)
    _refuse_wrong_pairs(f"{where}peer_access", document.get("peer_access", []), indices)
    host_memory_mib = document.get("host_memory_mib")
    return Box(
        gpus=gpus,
        links=tuple(Link(**entry) for entry in document.get("links", [])),
        name=document.get("name", ""),
        driver=document.get("driver"),
        cuda=document.get("cuda"),
        host_memory_bytes=None if host_memory_mib is None else round(host_memory_mib * MIB),
        faults=tuple(document.get("faults", ())),
        peer_access=tuple(PeerAccess(**entry) for entry in document.get("peer_access", [])),
        accelerators=tuple(Accelerator(**entry) for entry in document.get("accelerators", [])),
        topology_known=document.get("topology_known", True),
    )


def steady_readings_from(document: Document, box: Box) -> tuple[Reading, ...]:
    """What the document says of the cards apart from its frames: memory in use, and who is on them."""
    readings = {entry["index"]: _steady_reading(entry, place) for place, entry in enumerate(document["gpus"])}
    return tuple(readings[gpu.index] for gpu in box.gpus)


def frames_from(document: Document, box: Box) -> tuple[Frame, ...]:
    """The document's frames; in each, one reading for every card of the box as it then was."""
    frames: list[Frame] = []
    for place, entry in enumerate(document.get("frames", [])):
        where = f"frames[{place}]"
        if frames and entry["at"] <= frames[-1].at:
            raise ShapeError(f"{where}.at must be later than the frame before it")
        changed = box_from(entry["box"], f"{where}.box.") if "box" in entry else None
        box = changed or box
        frames.append(replace(frame_from(entry, box, where), box=changed))
    return tuple(frames)


def document_of(
    box: Box, steady: tuple[Reading, ...], frames: tuple[Frame, ...] = (), recorded_at: float | None = None
) -> Document:
    """The document of a box file that says all of this; what is not known is left out."""
    document = _box_document(box, {reading.gpu: reading for reading in steady})
    if recorded_at is not None:
        document["recorded_at"] = recorded_at
    if frames:
        document["frames"] = [
            frame_document(frame) | ({"box": _box_document(frame.box, {})} if frame.box else {}) for frame in frames
        ]
    return document


def _gpu_from(entry: Document) -> Gpu:
    pcie = entry.get("pcie", {})
    numa = entry.get("numa")
    reserved_mib = entry.get("memory_reserved_mib")
    major, _, minor = entry["compute_capability"].partition(".")
    return Gpu(
        memory_bytes=round(entry["memory_mib"] * MIB),
        memory_reserved_bytes=None if reserved_mib is None else round(reserved_mib * MIB),
        compute_capability=ComputeCapability(int(major), int(minor)),
        pcie=Pcie(_bus_id(pcie.get("bus")), pcie.get("gen"), pcie.get("width")),
        numa=None if numa is None else str(numa),
        nvlinks=tuple(NvLink(**{**lane, "bus": _bus_id(lane.get("bus"))}) for lane in entry.get("nvlinks", [])),
        **{key: entry[key] for key in _PLAIN if key in entry},
    )


def _bus_id(text: str | None) -> str | None:
    """A bus id as NVML writes it: eight digits of domain, capitals."""
    return None if text is None else text.upper().rjust(len("00000000:00:00.0"), "0")


def _refuse_repeats(where: str, key: str, document: Document, value: Any) -> None:
    seen: dict[object, int] = {}
    for place, entry in enumerate(document["gpus"]):
        found = value(entry)
        if found is not None and found in seen:
            raise ShapeError(f"{where}[{place}].{key} repeats {shown(found)} of {where}[{seen[found]}]")
        seen[found] = place


def _refuse_wrong_pairs(where: str, entries: list[Document], indices: set[int]) -> None:
    seen: dict[frozenset[int], int] = {}
    for place, entry in enumerate(entries):
        for end in ("a", "b"):
            if entry[end] not in indices:
                raise ShapeError(f"{where}[{place}].{end} names GPU {entry[end]}, which is not among gpus")
        if entry["a"] == entry["b"]:
            raise ShapeError(f"{where}[{place}] joins GPU {entry['a']} to itself")
        pair = frozenset((entry["a"], entry["b"]))
        if pair in seen:
            raise ShapeError(
                f"{where}[{place}] tells the pair {entry['a']} and {entry['b']} again, after {where}[{seen[pair]}]"
            )
        seen[pair] = place


def _steady_reading(entry: Document, place: int) -> Reading:
    total, used_mib, reserved_mib = entry["memory_mib"], entry.get("used_mib"), entry.get("memory_reserved_mib")
    if used_mib is not None and used_mib > total:
        raise ShapeError(f"gpus[{place}].used_mib is more than its memory_mib, {total}")
    if reserved_mib is not None and reserved_mib + (used_mib or 0) > total:
        raise ShapeError(f"gpus[{place}].memory_reserved_mib and what is in use are more than its memory_mib, {total}")
    used = None if used_mib is None else round(used_mib * MIB)
    reserved = None if reserved_mib is None else round(reserved_mib * MIB)
    return Reading(
        gpu=entry["index"],
        memory_used_bytes=used,
        memory_reserved_bytes=reserved,
        memory_free_bytes=None if used is None else round(total * MIB) - used - (reserved or 0),
        processes=processes_from(entry.get("processes", []), f"gpus[{place}]"),
    )


def _box_document(box: Box, steady: Mapping[int, Reading]) -> Document:
    return _known(
        {
            "name": box.name or None,
            "driver": box.driver,
            "cuda": box.cuda,
            "host_memory_mib": _mib(box.host_memory_bytes),
            "gpus": [_gpu_document(gpu, steady.get(gpu.index)) for gpu in box.gpus],
            "links": [fields_document(link) for link in box.links],
            "peer_access": [fields_document(pair) for pair in box.peer_access] or None,
            "accelerators": [fields_document(other) for other in box.accelerators] or None,
            "topology_known": None if box.topology_known else False,
            "faults": list(box.faults) or None,
        }
    )


def _gpu_document(gpu: Gpu, steady: Reading | None) -> Document:
    said = fields_document(gpu)
    return _known(
        {
            **{key: said.get(key) for key in _PLAIN},
            "memory_mib": _mib(gpu.memory_bytes),
            "memory_reserved_mib": _mib(gpu.memory_reserved_bytes),
            "compute_capability": str(gpu.compute_capability),
            "pcie": fields_document(gpu.pcie) or None,
            "numa": gpu.numa,
            "nvlinks": [fields_document(lane) for lane in gpu.nvlinks] or None,
            "used_mib": _mib(steady.memory_used_bytes) if steady else None,
            "processes": [fields_document(process) for process in steady.processes] or None if steady else None,
        }
    )


def _known(values: Mapping[str, Any]) -> Document:
    return {key: value for key, value in values.items() if value is not None}


def _mib(count: int | None) -> int | float | None:
    """Bytes as MiB: whole where they are whole, else with the fraction that gives the very bytes back."""
    if count is None:
        return None
    return count // MIB if count % MIB == 0 else count / MIB
