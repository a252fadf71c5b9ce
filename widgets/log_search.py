"""A search over a log buffer that goes on as lines come.  Pure."""

from bisect import bisect_left, bisect_right

from gpudeck.services.text import printable
from gpudeck.widgets.log_buffer import LogBuffer


class LogSearch:
    """The lines that hold `query`, ignoring case unless the query has a capital letter."""

    def __init__(self, buffer: LogBuffer, query: str) -> None:
        self.query = query
        self._exact = query != query.lower()
        self._buffer = buffer
        self._seen = buffer.first
        self.hits: list[int] = []  # line numbers, ascending
        self.sync()

    def sync(self) -> None:
        """Search what came since, forget what was dropped."""
        buffer = self._buffer
        if self.hits and self.hits[0] < buffer.first:
            del self.hits[: bisect_left(self.hits, buffer.first)]
        for number in range(max(self._seen, buffer.first), buffer.end):
            text = buffer.text(number)
            if self.query in (text if self._exact else text.lower()):
                self.hits.append(number)
        self._seen = buffer.end

    def step(self, number: int, direction: int) -> int | None:
        """The nearest hit after (direction 1) or before (-1) a line, going round at the end; None without hits."""
        if not self.hits:
            return None
        index = bisect_right(self.hits, number) if direction > 0 else bisect_left(self.hits, number) - 1
        return self.hits[index % len(self.hits)]

    def position(self, number: int | None) -> int | None:
        """Which hit a line is, from 1; None for a line that is none."""
        if number is None:
            return None
        index = bisect_left(self.hits, number)
        return index + 1 if index < len(self.hits) and self.hits[index] == number else None

    def spans(self, shown: str) -> list[tuple[int, int]]:
        """Where the query stands in a piece of a line as it is shown."""
        needle = printable(self.query)
        hay = shown if self._exact else shown.lower()
        if len(hay) != len(shown):  # a few letters change their length with their case
            return []
        spans, at = [], hay.find(needle)
        while at >= 0:
            spans.append((at, at + len(needle)))
            at = hay.find(needle, at + len(needle))
        return spans
