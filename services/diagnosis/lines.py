"""The lines of a log file of any size and content, in bounded memory."""

from collections.abc import Iterator
from typing import BinaryIO

_CHUNK = 1 << 18  # bytes
_LONGEST = 2 << 20  # bytes of a line that are kept; the rest of it is passed over


def lines_in(stream: BinaryIO) -> Iterator[str]:
    """Every line of `stream`, without its end; what is no UTF-8 is replaced.

    Of a line beyond 2 MiB the beginning is given.  Raises what reading raises.
    """
    held = bytearray()
    while chunk := stream.read(_CHUNK):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            _keep(held, part)
            yield held.decode("utf-8", "replace")
            held.clear()
        _keep(held, rest)
    if held:
        yield held.decode("utf-8", "replace")


def _keep(held: bytearray, part: bytes) -> None:
    held += part[: max(_LONGEST - len(held), 0)]
