"""Headers of safetensors files: which tensors there are, of which type and size, without their contents."""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeGuard

from gpudeck.services.models.fields import MAX_FIGURE, ModelError, json_object, read_json_object, shown

INDEX = "model.safetensors.index.json"
# safetensors itself refuses headers beyond 100 MB; the largest real ones (DeepSeek-V3, 163 files) have some 100 kB.
MAX_HEADER = 32 << 20
MAX_INDEX = 64 << 20
MAX_FILES = 4096
MAX_HEADERS_TOTAL = 128 << 20

DTYPE_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
    "C64": 8,
}  # fmt: skip
FLOATS = frozenset({"F64", "F32", "F16", "BF16"})


_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{3,6})-of-(?P<count>\d{3,6})\.(?P<ending>safetensors|bin)")


class Tensor(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int

    @property
    def elements(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count


def weight_files(directory: Path) -> tuple[Path, ...]:
    """The safetensors files that vLLM would load: those of the index, else all but Mistral's consolidated copy.

    Raises ModelError for a broken index and for a file that the index names and that is not there.
    """
    index = directory / INDEX
    if _present(index):
        return _indexed(directory, index)
    files = sorted(_listed(directory))
    originals = tuple(path for path in files if not path.name.startswith("consolidated")) or tuple(files)
    all_parts(originals)
    return originals


def all_parts(files: Iterable[Path]) -> None:
    """Raise ModelError where a file is named as one of several and another of them is not there.

    Hub checkpoints are named NAME-00001-of-00004; what a download has not brought yet would count as nothing.
    """
    counts: dict[tuple[str, str, str], set[int]] = {}
    for path in files:
        if part := _PART.fullmatch(path.name):
            key = part["stem"], part["count"], part["ending"]
            counts.setdefault(key, set()).add(int(part["number"]))
            if int(part["count"]) > MAX_FILES:
                raise ModelError(f"{shown(path)} is named as one of {part['count']} files, more than any model has.")
    for (stem, count, ending), numbers in counts.items():
        missing = next((number for number in range(1, int(count) + 1) if number not in numbers), None)
        if missing is not None:
            name = f"{stem}-{missing:0{len(count)}}-of-{count}.{ending}"
            raise ModelError(f"{shown(name)} is not beside the other parts of the model: download it again.")


def read_tensors(files: tuple[Path, ...]) -> Iterator[Tensor]:
    """Every tensor of these files.  Raises ModelError naming the file whose header is cut short or wrong."""
    budget = MAX_HEADERS_TOTAL
    for path in files:
        raw, size = _header(path)
        budget -= len(raw)
        if budget < 0:
            raise ModelError(f"The headers up to {shown(path)} are larger than any model's: it is not a real one.")
        yield from _tensors(json_object(raw, f"The header of {shown(path)}"), path, size - 8 - len(raw))


def _listed(directory: Path) -> list[Path]:
    try:
        with os.scandir(directory) as entries:
            found = [Path(entry.path) for entry in entries if entry.name.endswith(".safetensors")]
    except OSError as error:
        raise ModelError(f"{shown(directory)} can not be listed ({error.strerror}): check its rights.") from None
    if len(found) > MAX_FILES:
        raise ModelError(f"{shown(directory)} holds {len(found)} weight files, more than any model has.")
    return found


def _present(path: Path) -> bool:
    try:
        path.lstat()
    except OSError:
        return False
    return True


def _indexed(directory: Path, index: Path) -> tuple[Path, ...]:
    document = read_json_object(index, MAX_INDEX)
    weight_map = document.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelError(f"{shown(index)}: weight_map must name the tensors' files: download the index again.")
    names: set[str] = set()
    for name in weight_map.values():
        if not isinstance(name, str) or "/" in name or name in ("", ".", "..") or "\0" in name:
            raise ModelError(f"{shown(index)}: weight_map names {shown(repr(name))[:80]}, which is no file beside it.")
        names.add(name)
    if len(names) > MAX_FILES:
        raise ModelError(f"{shown(index)}: weight_map names {len(names)} files, more than any model has.")
    files = tuple(directory / name for name in sorted(names))
    for path in files:
        if not path.exists():
            raise ModelError(f"{shown(path)} is named by {INDEX} and is not there: download the model again.")
    return files


def _header(path: Path) -> tuple[bytes, int]:
    """The header's JSON, and the whole file's size."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(f"{shown(path)} is no regular file: put the model's own file there.")
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if status.st_size < 8 or length > status.st_size - 8:
                raise _cut_short(path)
            if length > MAX_HEADER:
                raise ModelError(f"{shown(path)} claims a header of {length:,} bytes: it is no safetensors file.")
            raw = file.read(length)
    except OSError as error:
        raise ModelError(f"{shown(path)} can not be read ({error.strerror}): check the path and its rights.") from None
    if len(raw) < length:
        raise _cut_short(path)
    return raw, status.st_size


def _tensors(header: dict[str, object], path: Path, data_size: int) -> Iterator[Tensor]:
    for name, value in header.items():
        if name == "__metadata__":
            continue
        if not isinstance(value, dict):
            raise _wrong(path, name, "must be an object")
        dtype, shape, offsets = value.get("dtype"), value.get("shape"), value.get("data_offsets")
        if not isinstance(dtype, str):
            raise _wrong(path, name, "lacks its dtype")
        if not _sizes(shape):
            raise _wrong(path, name, f"has the shape {json.dumps(shape)[:60]}")
        if not _sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
            raise _wrong(path, name, f"has the data_offsets {json.dumps(offsets)[:60]}")
        if offsets[1] > data_size:
            raise _cut_short(path)
        tensor = Tensor(name, dtype, tuple(shape), offsets[1] - offsets[0])
        unit = DTYPE_BYTES.get(dtype)
        if unit is not None and tensor.elements * unit != tensor.bytes:
            raise _wrong(path, name, "has a size that does not match its shape")
        yield tensor


def _sizes(value: object) -> TypeGuard[list[int]]:
    return (
        isinstance(value, list)
        and len(value) <= 8
        and all(isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= MAX_FIGURE for size in value)
    )


def _cut_short(path: Path) -> ModelError:
    return ModelError(f"{shown(path)} is cut short: download it again.")


def _wrong(path: Path, name: str, what: str) -> ModelError:
    return ModelError(f"{shown(path)}: the tensor {shown(name[:80])} {what}: download the file again.")
