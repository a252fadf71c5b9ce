"""Readings, frames and events as parts of a box file's document, and back.

What comes in has its shape already; what remains to be refused are contradictions between places.
"""

from dataclasses import MISSING, fields, replace
from typing import Any

from gpudeck.services.box.frames import Frame
from gpudeck.services.box.shape import ShapeError
from gpudeck.services.box.types import (
    MIB,
    Box,
    BoxEvent,
    Ecc,
    GpuProcess,
    LaneReading,
    MigInstance,
    Modes,
    Reading,
    Rows,
    Severity,
)

Document = dict[str, Any]

_OLD_S = 0.5  # a reading that is younger than this is one of its frame


def processes_from(entries: list[Document], where: str) -> tuple[GpuProcess, ...]:
    return tuple(_process_from(entry, f"{where}.processes[{place}]") for place, entry in enumerate(entries))


def frame_from(entry: Document, box: Box, where: str) -> Frame:
    """A frame of that box, with one reading for every card of it; its `box` is not looked at."""
    readings: dict[int, Reading] = {}
    for place, given in enumerate(entry["readings"]):
        index = given["gpu"]
        if box.gpu(index) is None:
            raise ShapeError(f"{where}.readings[{place}].gpu names GPU {index}, which is not among gpus")
        if index in readings:
            raise ShapeError(f"{where}.readings[{place}] reads GPU {index} a second time")
        readings[index] = _reading_from(given, entry["at"], f"{where}.readings[{place}]")
    return Frame(
        at=entry["at"],
        readings=tuple(readings.get(gpu.index, Reading(gpu.index)) for gpu in box.gpus),
        events=tuple(
            BoxEvent(**{**event, "severity": Severity(event["severity"])}) for event in entry.get("events", [])
        ),
    )


def frame_document(frame: Frame) -> Document:
    """The frame without its box."""
    document: Document = {"at": frame.at, "readings": [_reading_document(one, frame.at) for one in frame.readings]}
    if frame.events:
        document["events"] = [{**fields_document(event), "severity": event.severity.value} for event in frame.events]
    return document


def fields_document(value: Any) -> Document:
    """The fields of a flat dataclass that say something: not None, and not what they are by default."""
    return {
        field.name: said
        for field in fields(value)
        if (said := getattr(value, field.name)) is not None and (field.default is MISSING or said != field.default)
    }


def _process_from(entry: Document, where: str) -> GpuProcess:
    if "memory_mib" in entry and "memory_bytes" in entry:
        raise ShapeError(f"{where} has both memory_mib and memory_bytes: leave one out")
    memory = round(entry["memory_mib"] * MIB) if "memory_mib" in entry else entry.get("memory_bytes")
    given = {key: value for key, value in entry.items() if key not in ("memory_mib", "memory_bytes")}
    return GpuProcess(memory_bytes=memory, **given)


def _reading_from(entry: Document, frame_at: float, where: str) -> Reading:
    age = entry.get("age_s")
    parts: Document = {
        "at": None if age is None else frame_at - age,
        "throttle_reasons": tuple(entry.get("throttle_reasons", ())),
        "processes": processes_from(entry.get("processes", []), where),
        "mig": tuple(MigInstance(**instance) for instance in entry.get("mig", ())),
        "lanes": tuple(LaneReading(**lane) for lane in entry.get("lanes", ())),
        "ecc": Ecc(**entry["ecc"]) if "ecc" in entry else None,
        "rows": Rows(**entry["rows"]) if "rows" in entry else None,
        "modes": Modes(**entry["modes"]) if "modes" in entry else None,
    }
    given = {key: value for key, value in entry.items() if key not in parts and key != "age_s"}
    return Reading(**given, **parts)


def _reading_document(reading: Reading, frame_at: float) -> Document:
    document = fields_document(replace(reading, at=None))
    if reading.at is not None and frame_at - reading.at >= _OLD_S:
        document["age_s"] = round(frame_at - reading.at, 3)
    for key in ("ecc", "rows", "modes"):
        if key in document:
            document[key] = fields_document(document[key])
    for key in ("processes", "mig", "lanes"):
        if key in document:
            document[key] = [fields_document(one) for one in document[key]]
    if "throttle_reasons" in document:
        document["throttle_reasons"] = list(document["throttle_reasons"])
    return document
