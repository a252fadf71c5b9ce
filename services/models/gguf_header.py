"""The header of a .gguf file, read in bounded steps.

The gguf package knows the format's numbers (types, block sizes, key names) and they are taken from it.  Its own
reader is not used: it makes several numpy arrays for each of the tokenizer's hundred thousands of entries, which takes
seconds, and on a file whose counts lie it does not come to an end.
"""

import stat
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from gpudeck.services.models.fields import MAX_FIGURE, ModelError, shown

MAGIC = b"GGUF"
MAX_ENTRIES = 1 << 17  # metadata keys, and tensors: the largest real files have some thousands
MAX_STRING = 1 << 20  # chat templates are the longest
MAX_ARRAY = 1 << 24
MAX_HEADER = 256 << 20

Scalar = int | float | bool | str


@dataclass(frozen=True, slots=True)
class GgufTensor:
    name: str
    shape: tuple[int, ...]
    type: int  # gguf.GGMLQuantizationType
    elements: int
    bytes: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """`values` holds scalars and, for arrays, up to the first 1024 numbers; `lengths` the arrays' lengths."""

    values: dict[str, Scalar | tuple[Scalar, ...]] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    tensors: tuple[GgufTensor, ...] = ()


def read_header(path: Path) -> GgufHeader:
    """The metadata and the tensor list of a .gguf file.  Raises ModelError naming the file."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(f"{shown(path)} is no regular file: put the model's own file there.")
        with path.open("rb", buffering=1 << 16) as file:
            return _Reader(file, path).header(status.st_size)
    except OSError as error:
        raise ModelError(f"{shown(path)} can not be read ({error.strerror}): check the path and its rights.") from None


class _Reader:
    def __init__(self, file: BinaryIO, path: Path) -> None:
        from gguf.constants import GGML_QUANT_SIZES, GGUFValueType

        self._file = file
        self._path = path
        self._left = MAX_HEADER
        self._block_sizes = {int(kind): size for kind, size in GGML_QUANT_SIZES.items()}
        kinds = GGUFValueType
        self._string, self._array = int(kinds.STRING), int(kinds.ARRAY)
        self._formats = {
            int(kinds.UINT8): "<B", int(kinds.INT8): "<b", int(kinds.UINT16): "<H", int(kinds.INT16): "<h",
            int(kinds.UINT32): "<I", int(kinds.INT32): "<i", int(kinds.FLOAT32): "<f", int(kinds.BOOL): "<?",
            int(kinds.UINT64): "<Q", int(kinds.INT64): "<q", int(kinds.FLOAT64): "<d",
        }  # fmt: skip

    def header(self, size: int) -> GgufHeader:
        if self._bytes(4) != MAGIC:
            raise ModelError(f"{shown(self._path)} does not begin with GGUF: it is no .gguf file, or a broken one.")
        version = self._number("<I")
        if version not in (2, 3):
            raise ModelError(f"{shown(self._path)} is GGUF version {version}; 2 and 3 can be read: convert it anew.")
        tensor_count, value_count = self._number("<Q"), self._number("<Q")
        if tensor_count > MAX_ENTRIES or value_count > MAX_ENTRIES:
            raise ModelError(
                f"{shown(self._path)} claims {tensor_count:,} tensors and {value_count:,} metadata keys: "
                "download it again."
            )
        header = GgufHeader()
        for _ in range(int(value_count)):
            self._value(self._text(), header)
        tensors = tuple(self._tensor(size) for _ in range(int(tensor_count)))
        return GgufHeader(header.values, header.lengths, tensors)

    def _value(self, key: str, header: GgufHeader) -> None:
        kind = int(self._number("<I"))
        if kind != self._array:
            header.values[key] = self._scalar(kind, key)
            return
        kind, count = int(self._number("<I")), int(self._number("<Q"))
        if count > MAX_ARRAY:
            raise self._wrong(key, f"claims an array of {count:,} entries")
        header.lengths[key] = count
        if kind == self._string:
            for _ in range(count):
                self._skip(int(self._number("<Q")))
        elif kind in self._formats:
            kept = min(count, 1024)
            header.values[key] = tuple(self._scalar(kind, key) for _ in range(kept))
            self._skip((count - kept) * struct.calcsize(self._formats[kind]))
        else:
            raise self._wrong(key, f"has the unknown array type {kind}")

    def _scalar(self, kind: int, key: str) -> Scalar:
        if kind == self._string:
            return self._text()
        if kind not in self._formats:
            raise self._wrong(key, f"has the unknown type {kind}")
        return self._number(self._formats[kind])

    def _tensor(self, size: int) -> GgufTensor:
        name = self._text()
        dimensions = int(self._number("<I"))
        if dimensions > 8:
            raise self._wrong(name, f"has {dimensions} dimensions")
        shape = tuple(int(self._number("<Q")) for _ in range(dimensions))
        kind = int(self._number("<I"))
        offset = int(self._number("<Q"))
        elements = 1
        for length in shape:
            elements *= length
        if elements > MAX_FIGURE:
            raise self._wrong(name, f"has {elements:,} elements")
        if kind not in self._block_sizes:
            raise self._wrong(name, f"has the unknown quantization type {kind}")
        block, block_bytes = self._block_sizes[kind]
        stored = elements // block * block_bytes
        if offset + stored > size:
            raise self._cut_short()
        return GgufTensor(name, shape, kind, elements, stored)

    def _text(self) -> str:
        length = int(self._number("<Q"))
        if length > MAX_STRING:
            raise ModelError(f"{shown(self._path)} claims a text of {length:,} characters: download it again.")
        return self._bytes(length).decode("utf-8", "replace")

    def _number(self, form: str) -> int | float | bool:
        value: int | float | bool = struct.unpack(form, self._bytes(struct.calcsize(form)))[0]
        return value

    def _bytes(self, count: int) -> bytes:
        self._spend(count)
        data = self._file.read(count)
        if len(data) < count:
            raise self._cut_short()
        return data

    def _skip(self, count: int) -> None:
        # Reading is as quick as seeking within the buffer, and notices the end of the file.
        while count > 0:
            step = min(count, 1 << 16)
            self._bytes(step)
            count -= step

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise ModelError(f"The header of {shown(self._path)} is longer than any model's: it is not a real one.")

    def _wrong(self, key: str, what: str) -> ModelError:
        return ModelError(f"{shown(self._path)}: {shown(key[:80])} {what}: download the file again.")

    def _cut_short(self) -> ModelError:
        return ModelError(f"{shown(self._path)} is cut short: download it again.")
