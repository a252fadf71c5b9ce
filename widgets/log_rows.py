"""Which row of the log view shows which line: filter and wrapping, kept up as lines come and go.  Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from rich.cells import cell_len, split_graphemes

from gpudeck.services.text import printable
from gpudeck.widgets.log_buffer import LogBuffer


def wrapped(text: str, width: int) -> list[str]:
    """A line, made printable, in pieces of at most `width` cells (2 or more); at least one piece."""
    shown = printable(text)
    if shown.isascii():
        return [shown[at : at + width] for at in range(0, len(shown), width)] or [""]
    # Rich's chop_cells loses a last piece that has no width of its own.
    pieces, begin, cells = [], 0, 0
    for start, _, grapheme in split_graphemes(shown)[0]:
        if cells + grapheme > width:
            pieces.append(shown[begin:start])
            begin, cells = start, 0
        cells += grapheme
    return [*pieces, shown[begin:]]


def rows_of(text: str, width: int) -> int:
    """How many pieces `wrapped` makes, without making them where every character is one cell."""
    if text.isascii() and text.isprintable():
        return -(-len(text) // width) or 1
    return len(wrapped(text, width))


class LogRows:
    """The rows of a log view over a buffer.

    `sync` takes in what the buffer gained and dropped; between two calls rows and buffer may disagree.
    `keep` chooses the lines that have rows (None: all), `width` wraps them to so many cells (None: one row a line),
    `form` is what is shown of a line.
    """

    def __init__(self, buffer: LogBuffer) -> None:
        self._buffer = buffer
        self.arrange()

    def arrange(
        self,
        *,
        keep: Callable[[int], bool] | None = None,
        width: int | None = None,
        form: Callable[[str], str] = str,
    ) -> None:
        """Lay every line out anew."""
        self._keep = keep
        self._form = form
        self._width = width
        self._first = self._end = self._buffer.first
        self._kept: list[int] = []  # numbers of the lines that have rows; unused without a filter
        self._starts: list[int] = []  # the row where each line begins, counted from `_base`; unused without wrapping
        self._base = 0
        self._rows_end = 0
        self.sync()

    @property
    def height(self) -> int:
        """How many rows there are."""
        return self._rows_end - self._base if self._width else len(self._numbers)

    @property
    def wrap_width(self) -> int | None:
        return self._width

    def sync(self) -> int:
        """Follow the buffer; returns how many rows went from the top."""
        gone = self._drop()
        fresh: Sequence[int] = range(max(self._end, self._buffer.first), self._buffer.end)
        if self._keep is not None:
            fresh = [number for number in fresh if self._keep(number)]
            self._kept += fresh
        self._end = self._buffer.end
        if self._width and fresh:
            width, text, form = self._width, self._buffer.text, self._form
            counts = (rows_of(form(text(number)), width) for number in fresh)
            ends = list(accumulate(counts, initial=self._rows_end))
            self._rows_end = ends.pop()
            self._starts += ends
        return gone

    def locate(self, row: int) -> tuple[int, int] | None:
        """The line that a row shows, and which of its pieces; None beyond the last row."""
        if not 0 <= row < self.height:
            return None
        if not self._width:
            return self._numbers[row], 0
        index = bisect_right(self._starts, row + self._base) - 1
        return self._numbers[index], row + self._base - self._starts[index]

    def row(self, number: int) -> int:
        """The first row of a line; for one that has none, of the next that has (at most `height`)."""
        numbers = self._numbers
        index = bisect_left(numbers, number)
        if not self._width:
            return index
        return self._starts[index] - self._base if index < len(self._starts) else self.height

    @property
    def _numbers(self) -> Sequence[int]:
        return range(self._first, self._end) if self._keep is None else self._kept

    def _drop(self) -> int:
        lines = bisect_left(self._numbers, self._buffer.first)
        if self._keep is not None:
            del self._kept[:lines]
        self._first = self._buffer.first
        self._end = max(self._end, self._first)
        if not self._width:
            return lines
        gone = (self._starts[lines] if lines < len(self._starts) else self._rows_end) - self._base
        self._base += gone
        del self._starts[:lines]
        return gone


def width_of(text: str) -> int:
    """The cells that a line takes on one row."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(printable(text))
