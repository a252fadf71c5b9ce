"""A model in several .gguf files, as llama.cpp's gguf-split writes them: NAME-00001-of-00003.gguf and so on."""

import re
from collections.abc import Iterator
from pathlib import Path

from gpudeck.services.models.fields import ModelError, shown
from gpudeck.services.models.gguf_header import GgufHeader, GgufTensor, read_header

_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf\Z", re.IGNORECASE)
MAX_PARTS = 1000  # the largest real ones have some dozens


def first_part(path: Path) -> Path:
    """The file that holds the metadata: this one, or the first where it is one of several."""
    found = _PART.match(path.name)
    if found is None or int(found["number"]) == 1:
        return path
    return path.with_name(f"{found['stem']}-00001-of-{found['count']}{path.suffix}")


def model_stem(path: Path) -> str:
    """The model's name without the number of its part."""
    found = _PART.match(path.name)
    return path.stem if found is None else found["stem"]


def part_paths(first: Path) -> tuple[Path, ...]:
    """Every part that the first one's name stands for, whether it is there or not."""
    found = _PART.match(first.name)
    if found is None:
        return (first,)
    count = int(found["count"])
    if not 1 <= count <= MAX_PARTS:
        raise ModelError(f"{shown(first)} is named as one of {count} parts: no model has so many; rename it.")
    names = (f"{found['stem']}-{number:05}-of-{count:05}{first.suffix}" for number in range(1, count + 1))
    return tuple(first.with_name(name) for name in names)


def read_parts(first: Path) -> GgufHeader:
    """The first part's metadata with the tensors of all parts.  Raises ModelError naming the part that lacks."""
    header = read_header(first)
    count = header.values.get("split.count", 1)
    paths = part_paths(first)
    if isinstance(count, int) and count > 1 and count != len(paths):
        raise ModelError(
            f"{shown(first)} says that the model has {count} parts, and its name does not: give the first file its own "
            f"name back, NAME-00001-of-{min(count, 99999):05}.gguf, with the others beside it."
        )
    return GgufHeader(header.values, header.lengths, (*header.tensors, *_others(paths[1:])))


def _others(paths: tuple[Path, ...]) -> Iterator[GgufTensor]:
    for path in paths:
        if not path.exists():
            raise ModelError(f"{shown(path)} is a part of this model and is not there: download it again.")
        yield from read_header(path).tensors
