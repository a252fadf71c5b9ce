"""A box and its readings as the document of a box file, and back.

The documents that come in have the shape BOX_FILE already; what remains to be refused here are contradictions between
places.  ShapeError names both.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gpudeck.services.box.frames import Frame
from gpudeck.services.box.shape import ShapeError, shown
from gpudeck.services.box.types import MIB, Box, ComputeCapability, Gpu, GpuProcess, Link, Pcie, Reading

Document = dict[str, Any]


def box_from(document: Document) -> Box:
    """The box of a document; its cards in the order of their indices."""
    gpus = tuple(sorted((_gpu_from(entry) for entry in document["gpus"]), key=lambda gpu: gpu.index))
    _refuse_repeats("index", document, lambda gpu: gpu["index"])
    _refuse_repeats("uuid", document, lambda gpu: gpu.get("uuid"))
    _refuse_repeats("pcie.bus", document, lambda gpu: _bus_id(gpu.get("pcie", {}).get("bus")))
    host_memory_mib = document.get("host_memory_mib")
    return Box(
        gpus=gpus,
        links=_links_from(document.get("links", []), {gpu.index for gpu in gpus}),
        name=document.get("name", ""),
        driver=document.get("driver"),
        cuda=document.get("cuda"),
        host_memory_bytes=None if host_memory_mib is None else round(host_memory_mib * MIB),
    )


def steady_readings_from(document: Document, box: Box) -> tuple[Reading, ...]:
    """What the document says of the cards apart from its frames: memory in use, and who is on them."""
    readings = {entry["index"]: _steady_reading(entry, place) for place, entry in enumerate(document["gpus"])}
    return tuple(readings[gpu.index] for gpu in box.gpus)


def frames_from(document: Document, box: Box) -> tuple[Frame, ...]:
    """The document's frames; in each, one reading for every card of the box."""
    frames = tuple(
        Frame(entry["at"], _frame_readings(entry["readings"], box, f"frames[{place}]"))
        for place, entry in enumerate(document.get("frames", []))
    )
    for place in range(1, len(frames)):
        if frames[place].at <= frames[place - 1].at:
            raise ShapeError(f"frames[{place}].at must be later than the frame before it")
    return frames


def document_of(
    box: Box, steady: tuple[Reading, ...], frames: tuple[Frame, ...] = (), recorded_at: float | None = None
) -> Document:
    """The document of a box file that says all of this; what is not known is left out."""
    of_card = {reading.gpu: reading for reading in steady}
    document: Document = {
        "name": box.name or None,
        "driver": box.driver,
        "cuda": box.cuda,
        "host_memory_mib": _mib(box.host_memory_bytes),
        "gpus": [_gpu_document(gpu, of_card.get(gpu.index)) for gpu in box.gpus],
        "links": [{"a": link.a, "b": link.b, "kind": link.kind} for link in box.links],
        "recorded_at": recorded_at,
    }
    if frames:
        document["frames"] = [
            {"at": frame.at, "readings": [_reading_document(reading) for reading in frame.readings]} for frame in frames
        ]
    return _known(document)


def _gpu_from(entry: Document) -> Gpu:
    pcie = entry.get("pcie", {})
    numa = entry.get("numa")
    major, _, minor = entry["compute_capability"].partition(".")
    return Gpu(
        index=entry["index"],
        name=entry["name"],
        memory_bytes=round(entry["memory_mib"] * MIB),
        compute_capability=ComputeCapability(int(major), int(minor)),
        uuid=entry.get("uuid"),
        pcie=Pcie(_bus_id(pcie.get("bus")), pcie.get("gen"), pcie.get("width")),
        numa=None if numa is None else str(numa),
        cpu_affinity=entry.get("cpu_affinity"),
        power_limit_w=entry.get("power_limit_w"),
        memory_bandwidth_gbs=entry.get("memory_bandwidth_gbs"),
    )


def _bus_id(text: str | None) -> str | None:
    """A bus id as NVML writes it: eight digits of domain, capitals."""
    return None if text is None else text.upper().rjust(len("00000000:00:00.0"), "0")


def _refuse_repeats(key: str, document: Document, value: Any) -> None:
    seen: dict[object, int] = {}
    for place, entry in enumerate(document["gpus"]):
        found = value(entry)
        if found is not None and found in seen:
            raise ShapeError(f"gpus[{place}].{key} repeats {shown(found)} of gpus[{seen[found]}]")
        seen[found] = place


def _links_from(entries: list[Document], indices: set[int]) -> tuple[Link, ...]:
    seen: dict[frozenset[int], int] = {}
    for place, entry in enumerate(entries):
        where = f"links[{place}]"
        for end in ("a", "b"):
            if entry[end] not in indices:
                raise ShapeError(f"{where}.{end} names GPU {entry[end]}, which is not among gpus")
        if entry["a"] == entry["b"]:
            raise ShapeError(f"{where} joins GPU {entry['a']} to itself")
        pair = frozenset((entry["a"], entry["b"]))
        if pair in seen:
            raise ShapeError(f"{where} tells the pair {entry['a']} and {entry['b']} again, after links[{seen[pair]}]")
        seen[pair] = place
    return tuple(Link(entry["a"], entry["b"], entry["kind"]) for entry in entries)


def _steady_reading(entry: Document, place: int) -> Reading:
    used_mib = entry.get("used_mib")
    if used_mib is not None and used_mib > entry["memory_mib"]:
        raise ShapeError(f"gpus[{place}].used_mib is more than its memory_mib, {entry['memory_mib']}")
    total = round(entry["memory_mib"] * MIB)
    used = None if used_mib is None else round(used_mib * MIB)
    return Reading(
        gpu=entry["index"],
        memory_used_bytes=used,
        memory_free_bytes=None if used is None else total - used,
        processes=_processes_from(entry.get("processes", []), f"gpus[{place}]"),
    )


def _processes_from(entries: list[Document], where: str) -> tuple[GpuProcess, ...]:
    return tuple(_process_from(entry, f"{where}.processes[{place}]") for place, entry in enumerate(entries))


def _process_from(entry: Document, where: str) -> GpuProcess:
    if "memory_mib" in entry and "memory_bytes" in entry:
        raise ShapeError(f"{where} has both memory_mib and memory_bytes: leave one out")
    memory = round(entry["memory_mib"] * MIB) if "memory_mib" in entry else entry.get("memory_bytes")
    given = {key: value for key, value in entry.items() if key not in ("memory_mib", "memory_bytes")}
    return GpuProcess(memory_bytes=memory, **given)


def _frame_readings(entries: list[Document], box: Box, where: str) -> tuple[Reading, ...]:
    readings: dict[int, Reading] = {}
    for place, entry in enumerate(entries):
        index = entry["gpu"]
        if box.gpu(index) is None:
            raise ShapeError(f"{where}.readings[{place}].gpu names GPU {index}, which is not among gpus")
        if index in readings:
            raise ShapeError(f"{where}.readings[{place}] reads GPU {index} a second time")
        given = {key: value for key, value in entry.items() if key not in ("throttle_reasons", "processes")}
        readings[index] = Reading(
            throttle_reasons=tuple(entry.get("throttle_reasons", ())),
            processes=_processes_from(entry.get("processes", []), f"{where}.readings[{place}]"),
            **given,
        )
    return tuple(readings.get(gpu.index, Reading(gpu.index)) for gpu in box.gpus)


def _gpu_document(gpu: Gpu, steady: Reading | None) -> Document:
    return _known(
        {
            "index": gpu.index,
            "name": gpu.name,
            "memory_mib": _mib(gpu.memory_bytes),
            "compute_capability": str(gpu.compute_capability),
            "uuid": gpu.uuid,
            "pcie": _known({"bus": gpu.pcie.bus, "gen": gpu.pcie.gen, "width": gpu.pcie.width}) or None,
            "numa": gpu.numa,
            "cpu_affinity": gpu.cpu_affinity,
            "power_limit_w": gpu.power_limit_w,
            "memory_bandwidth_gbs": gpu.memory_bandwidth_gbs,
            "used_mib": _mib(steady.memory_used_bytes) if steady else None,
            "processes": [_fields_document(process) for process in steady.processes] or None if steady else None,
        }
    )


def _reading_document(reading: Reading) -> Document:
    document = _fields_document(reading)
    document.pop("throttle_reasons")
    document.pop("processes")
    if reading.throttle_reasons:
        document["throttle_reasons"] = list(reading.throttle_reasons)
    if reading.processes:
        document["processes"] = [_fields_document(process) for process in reading.processes]
    return document


def _fields_document(value: Reading | GpuProcess) -> Document:
    given = {field.name: (getattr(value, field.name), field.default) for field in fields(value)}
    return {key: said for key, (said, default) in given.items() if said is not None and said != default}


def _known(values: Mapping[str, Any]) -> Document:
    return {key: value for key, value in values.items() if value is not None}


def _mib(count: int | None) -> int | float | None:
    """Bytes as MiB: whole where they are whole, else with the fraction that gives the very bytes back."""
    if count is None:
        return None
    return count // MIB if count % MIB == 0 else count / MIB
