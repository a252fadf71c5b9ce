"""Reading foreign JSON field by field: what is wrong is named with its file, and nothing absurd gets through."""

import json
import math
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

# The largest real figure of any kind in a config is below 2^40 (parameters of the largest models), and a figure
# beyond it would only overflow what is computed from it.
MAX_FIGURE = 1 << 40
_MAX_NAME = 200  # of a class, a type, a method


class ModelError(OperatorError):
    """A model that can not be read; the sentence names the file and the field."""


def read_regular(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes.  Raises ModelError; never opens a pipe or a device."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(f"{shown(path)} is no regular file: put the model's own file there.")
        if status.st_size > limit:
            raise ModelError(
                f"{shown(path)} has {status.st_size:,} bytes, more than the {limit:,} such a file can need: it is not "
                "the model's own."
            )
        with path.open("rb") as file:
            return file.read(limit)
    except FileNotFoundError:
        raise ModelError(f"{shown(path)} is not there: copy or download the model again.") from None
    except OSError as error:
        raise ModelError(f"{shown(path)} can not be read ({error.strerror}): check the path and its rights.") from None


def read_json_object(path: Path, limit: int) -> dict[str, Any]:
    """The JSON object in a file of at most `limit` bytes.  Raises ModelError."""
    return json_object(read_regular(path, limit), shown(path))


def json_object(raw: bytes, origin: str) -> dict[str, Any]:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else printable(str(error))
        raise ModelError(f"{origin} is no valid JSON ({reason}): download it again.") from None
    if not isinstance(document, dict):
        raise ModelError(f"{origin} holds no JSON object: download it again.")
    return document


def shown(path: object) -> str:
    return printable(str(path))


def _is_name(value: object) -> TypeGuard[str]:
    """Whether it is a text that may stand in a sentence as it is."""
    return isinstance(value, str) and len(value) <= _MAX_NAME and printable(value) == value


class Fields:
    """One JSON object of a config with where it came from, so that every refusal names file and field."""

    def __init__(self, values: Mapping[str, Any], origin: str, prefix: str = "") -> None:
        self.values = values
        self.origin = origin
        self.prefix = prefix

    def wrong(self, field: str, wanted: str) -> ModelError:
        value = printable(repr(self.values.get(field))[:60])
        return ModelError(f"{self.origin}: {self.prefix}{field} must be {wanted}, not {value}: correct the file.")

    def has(self, field: str) -> bool:
        return self.values.get(field) is not None

    def first(self, *fields: str) -> str:
        """The first of these names of one field that is there; else the first of all, for the refusal to name."""
        return next((field for field in fields if self.has(field)), fields[0])

    def whole(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """A whole number of at least `least`, under the first of its names that is there."""
        field = self.first(*names)
        value = self.values.get(field)
        if value is None:
            if default is None:
                raise ModelError(f"{self.origin} lacks the field {self.prefix}{field}: download the file again.")
            return default
        if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_FIGURE:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_FIGURE:
            raise self.wrong(field, f"a whole number from {least} to {MAX_FIGURE}")
        return value

    def maybe_whole(self, *names: str, least: int = 1) -> int | None:
        return self.whole(*names, least=least) if self.has(self.first(*names)) else None

    def flag(self, field: str, default: bool) -> bool:
        value = self.values.get(field)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(field, "true or false")
        return value

    def text(self, *names: str, default: str = "") -> str:
        field = self.first(*names)
        value = self.values.get(field)
        if value is None:
            return default
        if not _is_name(value):
            raise self.wrong(field, "a short text")
        return value

    def number(self, field: str, default: float) -> float:
        value = self.values.get(field)
        if value is None:
            return default
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
            raise self.wrong(field, "a number")
        return float(value)

    def texts(self, field: str, at_most: int) -> tuple[str, ...]:
        value = self.values.get(field)
        if value is None:
            return ()
        if not isinstance(value, list) or len(value) > at_most or not all(_is_name(entry) for entry in value):
            raise self.wrong(field, "a list of short texts")
        return tuple(value)

    def inner(self, field: str) -> "Fields | None":
        value = self.values.get(field)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(field, "an object")
        return Fields(value, self.origin, f"{self.prefix}{field}.")
