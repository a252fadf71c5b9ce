"""Titled frames of tiles, laid side by side as long as they fit; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import Line, width_of

_BETWEEN = 1  # cells between two frames
EDGES = 3  # cells of a frame beside its tiles: two edges, and a blank at the left


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame to be drawn: what stands in it, and on it."""

    title: str
    right: str  # at the right end of its upper edge
    rows: tuple[Line, ...]
    tiles_width: int
    shape: str  # as in Glyphs: corners, horizontal, vertical
    style: str
    taps: tuple[int, ...] = ()  # cells of its lower edge on which a card hangs

    @property
    def width(self) -> int:
        head = cell_len(self.title) + (cell_len(self.right) + 2 if self.right else 0) + 6
        return max(self.tiles_width + EDGES, head)


def laid_out(frames: Sequence[Frame], width: int, glyphs: Glyphs) -> list[Line]:
    """The frames drawn from left to right, on as many rows of frames as they need."""
    lines: list[Line] = []
    for row in rows_of(frames, width):
        drawn = [_drawn(frame, min(frame.width, width), glyphs) for frame in row]
        for y in range(max(map(len, drawn))):
            line: Line = ()
            for frame, block in zip(row, drawn, strict=True):
                gap = " " * _BETWEEN if line else ""
                blank: Line = ((" " * min(frame.width, width), ""),)
                line = (*line, (gap, ""), *(block[y] if y < len(block) else blank))
            lines.append(tuple(span for span in line if span[0]))
    return lines


def rows_of(frames: Sequence[Frame], width: int) -> list[list[Frame]]:
    """Which frames stand beside each other."""
    rows: list[list[Frame]] = []
    left = 0
    for frame in frames:
        if rows and frame.width + _BETWEEN <= left:
            rows[-1].append(frame)
            left -= frame.width + _BETWEEN
        else:
            rows.append([frame])
            left = width - frame.width
    return rows


def _drawn(frame: Frame, width: int, glyphs: Glyphs) -> list[Line]:
    upper_left, upper_right, lower_left, lower_right, across, down = tuple(frame.shape)
    style = frame.style
    # What the edge says at its right gives way to the title.
    right = f" {frame.right} {across}" if frame.right and frame.width <= width else ""
    title = glyphs.cut(frame.title, width - cell_len(right) - 5)
    rest = across * (width - 5 - cell_len(title) - cell_len(right))
    top: Line = (
        (f"{upper_left}{across} ", style),
        (title, "strong"),
        (f" {rest}", style),
        (right[:-1], "text"),
        (right[-1:] + upper_right, style),
    )
    lower = [glyphs.tap if x in frame.taps else across for x in range(1, width - 1)]
    inside = width - 3
    rows: list[Line] = [
        ((f"{down} ", style), *row, (" " * max(0, inside - width_of(row)), ""), (down, style)) for row in frame.rows
    ]
    return [top, *rows, ((lower_left + "".join(lower) + lower_right, style),)]
