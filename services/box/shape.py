"""Shapes of JSON documents: one declaration that both checks a document and writes its JSON Schema.

A check that fails raises `ShapeError`, whose text names the place (`gpus[1].memory_mib`) and what must stand there.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

_SHOWN = 40  # characters of a wrong value that a message repeats


class ShapeError(ValueError):
    """A document that is not of its shape; the text is a clause that names the place and the way out."""


class Shape(Protocol):
    def check(self, value: object, where: str) -> None:
        """Raise ShapeError unless `value` is of this shape; `where` is its place in the document ("" for all of it)."""
        ...

    def schema(self) -> dict[str, Any]:
        """The same as JSON Schema (draft 2020-12)."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """A string of at most `most` characters, all of it matching `pattern`."""

    pattern: str | None = None
    what: str = "a text"  # names it in messages: 'a string such as "8.9"'
    most: int = 1024

    def check(self, value: object, where: str) -> None:
        if not isinstance(value, str):
            raise ShapeError(f"{where} must be {self.what}, not {shown(value)}")
        if len(value) > self.most:
            raise ShapeError(f"{where} has {len(value)} characters; at most {self.most} are allowed")
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            raise ShapeError(f"{where} must be {self.what}, not {shown(value)}")

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string", "maxLength": self.most}
        if self.pattern is not None:
            schema["pattern"] = f"^(?:{self.pattern})$"
        return schema


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, value: object, where: str) -> None:
        if not isinstance(value, str) or value not in self.words:
            raise ShapeError(f"{where} must be one of {', '.join(self.words)}, not {shown(value)}")

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class Truth:
    """true or false."""

    def check(self, value: object, where: str) -> None:
        if not isinstance(value, bool):
            raise ShapeError(f"{where} must be true or false, not {shown(value)}")

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `least` to `most`."""

    least: int
    most: int

    def check(self, value: object, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not self.least <= value <= self.most:
            raise ShapeError(f"{where} must be a whole number from {self.least} to {self.most}, not {shown(value)}")

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number from `least` to `most`."""

    least: float
    most: float

    def check(self, value: object, where: str) -> None:
        # A comparison holds for no NaN; infinities are outside every range here.
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
        if not self.least <= number <= self.most:
            raise ShapeError(f"{where} must be a number from {self.least:g} to {self.most:g}, not {shown(value)}")

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    def check(self, value: object, where: str) -> None:
        if not isinstance(value, bool):
            raise ShapeError(f"{where} must be true or false, not {shown(value)}")

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class OrNull:
    """The shape, or null for what a card does not report."""

    shape: Shape

    def check(self, value: object, where: str) -> None:
        if value is not None:
            self.shape.check(value, where)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.shape.schema(), {"type": "null"}]}


@dataclass(frozen=True, slots=True)
class Either:
    """One of two shapes, of different JSON types."""

    first: Shape
    second: Shape

    def check(self, value: object, where: str) -> None:
        try:
            self.first.check(value, where)
        except ShapeError as error:
            try:
                self.second.check(value, where)
            except ShapeError:
                raise error from None

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.first.schema(), self.second.schema()]}


@dataclass(frozen=True, slots=True)
class Listing:
    """An array of `least` to `most` items of one shape."""

    item: Shape
    most: int
    least: int = 0

    def check(self, value: object, where: str) -> None:
        if not isinstance(value, list):
            raise ShapeError(f"{where} must be a list, not {shown(value)}")
        if not self.least <= len(value) <= self.most:
            raise ShapeError(f"{where} has {len(value)} entries; it must have {self.least} to {self.most}")
        for position, item in enumerate(value):
            self.item.check(item, f"{where}[{position}]")

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.schema(), "minItems": self.least, "maxItems": self.most}


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a record."""

    shape: Shape
    about: str  # for the schema: what it is, in which unit
    required: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """An object with these keys and no other."""

    fields: Mapping[str, Field]
    about: str = ""

    def check(self, value: object, where: str) -> None:
        place = where or "the document"
        if not isinstance(value, dict):
            raise ShapeError(f"{place} must be an object, not {shown(value)}")
        for key in value:
            if key not in self.fields:
                raise ShapeError(f"{place} has the unknown key {shown(key)}; known are {', '.join(self.fields)}")
        for key, field in self.fields.items():
            inner = f"{where}.{key}" if where else key
            if key in value:
                field.shape.check(value[key], inner)
            elif field.required:
                raise ShapeError(f"{inner} is missing")

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                key: {**field.shape.schema(), "description": field.about} for key, field in self.fields.items()
            },
            "required": [key for key, field in self.fields.items() if field.required],
        }
        if self.about:
            schema["description"] = self.about
        return schema


def shown(value: object) -> str:
    """The value as a message repeats it: JSON, cut short."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def published(shape: Shape, title: str) -> dict[str, Any]:
    """The JSON Schema document of a shape, as docs/ holds it."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **shape.schema()}
