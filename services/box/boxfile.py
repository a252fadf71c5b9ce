"""Box files: one box as JSON, written by hand or recorded.  docs/box-file.md tells every key."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudeck.services.box.boxdocument import box_from, document_of, frames_from, steady_readings_from
from gpudeck.services.box.boxshape import BOX_FILE
from gpudeck.services.box.frames import Frame
from gpudeck.services.box.shape import ShapeError
from gpudeck.services.box.types import Box, Reading
from gpudeck.services.errors import OperatorError
from gpudeck.services.whole_file import umask_mode, write_whole

MAX_FILE_BYTES = 128 << 20


class BoxFileError(OperatorError):
    """A box file that can not be read or written; the text names the file and the place in it."""


@dataclass(frozen=True, slots=True)
class BoxFile:
    """What a box file holds.  `steady` is one reading a card, in the order of `box.gpus`."""

    box: Box
    steady: tuple[Reading, ...]
    frames: tuple[Frame, ...] = ()
    recorded_at: float | None = None  # seconds since the epoch


def load_box_file(path: Path) -> BoxFile:
    """Read a box file.  Raises BoxFileError where it is missing, too large, no JSON, or not a box."""
    return parse_box_file(_text_of(path), str(path))


def parse_box_file(text: str, name: str) -> BoxFile:
    """Read the text of a box file; `name` is what errors call it.  Raises BoxFileError."""
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
        BOX_FILE.check(document, "")
        box = box_from(document)
        return BoxFile(
            box=box,
            steady=steady_readings_from(document, box),
            frames=frames_from(document, box),
            recorded_at=document.get("recorded_at"),
        )
    except ShapeError as error:
        raise BoxFileError(f"{name} is no box file: {error}.") from None
    except json.JSONDecodeError as error:
        raise BoxFileError(f"{name} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise BoxFileError(f"{name} is no box file: it is nested too deeply.") from None
    except ValueError as error:
        # json.loads itself: an integer of more digits than Python converts.
        raise BoxFileError(f"{name} is not JSON that can be read: {error}.") from None


def save_box_file(path: Path, file: BoxFile) -> None:
    """Write a box file whole or not at all.  Raises BoxFileError."""
    document = document_of(file.box, file.steady, file.frames, file.recorded_at)
    text = json.dumps(document, indent=None if file.frames else 2, ensure_ascii=False) + "\n"
    try:
        write_whole(path, text.encode("utf-8", "replace"), mode=umask_mode())
    except OSError as error:
        raise BoxFileError(f"{path} can not be written: {error.strerror or error}.") from None


def _text_of(path: Path) -> str:
    try:
        if not path.is_file():
            why = "is not a regular file" if path.exists() else "does not exist"
            raise BoxFileError(f"{path} {why}: give a box file, as `gpudeck box --record FILE` writes it.")
        with path.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BoxFileError(f"{path} can not be read: {error.strerror or error}.") from None
    if len(content) > MAX_FILE_BYTES:
        raise BoxFileError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB and is no box file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BoxFileError(f"{path} is not JSON: byte {error.start} is no UTF-8.") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ShapeError(f"the key {json.dumps(repeated)} stands twice in one object")
    return record


def _no_constant(name: str) -> float:
    raise ShapeError(f"{name} is no number of JSON")
