"""A card's past as a sparkline remembers it."""

from collections import deque

CELL_S = 4.0  # seconds that one cell stands for: 32 of them look back two minutes
CELLS = 64


class Trend:
    """Means over CELL_S each, oldest first; a cell without any reading is None.

    A cell of several readings makes the line longer, and calmer: at one cell a reading every cell of it would be drawn
    anew at every beat.
    """

    def __init__(self) -> None:
        self._means: deque[float | None] = deque(maxlen=CELLS)
        self._cell: int | None = None
        self._sum = 0.0
        self._count = 0

    def add(self, at: float, value: float | None) -> None:
        """A reading, 0 to 1 or not told, at a time in seconds that only grows."""
        cell = int(at // CELL_S)
        if self._cell is None or cell < self._cell:
            self._means.append(None)
        else:
            self._means.extend([None] * min(cell - self._cell, CELLS))
        if cell != self._cell:
            self._cell, self._sum, self._count = cell, 0.0, 0
        if value is not None:
            self._sum += value
            self._count += 1
            self._means[-1] = self._sum / self._count

    @property
    def means(self) -> tuple[float | None, ...]:
        return tuple(self._means)
