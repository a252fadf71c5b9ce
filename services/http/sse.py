"""Server-sent events, as far as vLLM uses them: the data of one event after the other, of bounded size."""

from collections.abc import Iterator

MAX_EVENT = 1 << 20  # bytes; a piece of an answer has a few hundred


class EventTooLongError(ValueError):
    """An event of more than MAX_EVENT bytes: no answer has one, and a broken server must not fill the memory."""


class EventReader:
    """Bytes in, the data of whole events out (WHATWG's server-sent events without names and ids)."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Read a chunk, wherever it was cut, and yield the events that it completes.  Raises EventTooLongError."""
        self._rest += chunk
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
                self._size += len(line)
            elif not line and self._data:
                yield self._event()
            self._check()
        self._check()

    def close(self) -> Iterator[str]:
        """The last event, where the server left out the blank line behind it."""
        yield from self.feed(b"\n\n")

    def _event(self) -> str:
        event = b"\n".join(self._data).decode("utf-8", "replace")
        self._data, self._size = [], 0
        return event

    def _check(self) -> None:
        if self._size + len(self._rest) > MAX_EVENT:
            raise EventTooLongError
