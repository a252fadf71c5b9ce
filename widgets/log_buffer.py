"""The lines of a log that are held: a ring of bounded length and memory, numbered from the first that ever came."""

import sys
from bisect import bisect_left
from collections.abc import Sequence

from gpudeck.services.engine.types import LogLine
from gpudeck.widgets.log_line import Level, last_state, level_of

MAX_LINES = 100_000
MAX_BYTES = 64 << 20


class LogBuffer:
    """The newest lines of a log.

    A line keeps its number for ever: `first` is the number of the oldest line held, `end` one past the newest, and
    what is below `first` has been dropped.  Lines are foreign text, held as they came (see `log_line.last_state`).
    """

    def __init__(self, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> None:
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._texts: list[str] = []
        self._levels = bytearray()
        self._errors: list[int] = []
        self._bytes = 0
        self.first = 0
        self.left_out = 0  # lines that came too fast to be taken in: they have no number

    @property
    def end(self) -> int:
        return self.first + len(self._texts)

    @property
    def errors(self) -> Sequence[int]:
        """The numbers of the error lines held, ascending."""
        return self._errors

    @property
    def size_bytes(self) -> int:
        """What the texts held take in memory."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._texts)

    def text(self, number: int) -> str:
        """The line with that number.  Raises IndexError for one that is not held."""
        if not self.first <= number < self.end:
            raise IndexError(f"line {number} is not held")
        return self._texts[number - self.first]

    def level(self, number: int) -> Level:
        return Level(self._levels[number - self.first])

    def extend(self, lines: Sequence[LogLine]) -> None:
        """Take in lines, oldest first, and drop the oldest beyond the bounds."""
        self.left_out += sum(line.left_out for line in lines)
        surplus = len(lines) - self._max_lines
        if surplus > 0:
            # Numbered, but never held: they would be dropped at once.
            self.clear(end=self.end + surplus)
            lines = lines[surplus:]
        texts = [last_state(line.text) for line in lines]
        levels = bytes([level_of(text, line.priority) for text, line in zip(texts, lines, strict=True)])
        if Level.ERROR in levels:
            start = self.end
            self._errors.extend(start + index for index, level in enumerate(levels) if level == Level.ERROR)
        self._texts += texts
        self._levels += levels
        self._bytes += sum(map(sys.getsizeof, texts))
        self._trim()

    def clear(self, *, end: int | None = None) -> None:
        """Drop every line; the numbering goes on at `end` (by default where it stood)."""
        self.first = self.end if end is None else end
        self._texts.clear()
        self._levels.clear()
        self._errors.clear()
        self._bytes = 0

    def _trim(self) -> None:
        drop = max(0, len(self._texts) - self._max_lines)
        size = self._bytes - sum(map(sys.getsizeof, self._texts[:drop]))
        while size > self._max_bytes and drop < len(self._texts) - 1:
            size -= sys.getsizeof(self._texts[drop])
            drop += 1
        if drop:
            del self._texts[:drop]
            del self._levels[:drop]
            self._bytes = size
            self.first += drop
            del self._errors[: bisect_left(self._errors, self.first)]
