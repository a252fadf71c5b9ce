"""The colours of a log line: its level, worker, time and place, and where a search hit it."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from gpudeck.widgets.log_line import Level, parts_of
from gpudeck.widgets.log_search import LogSearch


@dataclass(frozen=True, slots=True)
class Palette:
    """The styles of a theme; all but `base` lie over it."""

    base: Style
    dim: Style
    worker: Style
    warning: Style
    error: Style
    hit: Style
    current: Style


def paint(
    line: str, pieces: Sequence[str], level: Level, palette: Palette, console: Console, search: LogSearch | None
) -> list[Strip]:
    """One strip for each piece of the line (see `log_rows.wrapped`)."""
    base = palette.base
    if level is Level.ERROR or level is Level.WARNING:
        base += palette.error if level is Level.ERROR else palette.warning
    # A prefix holds no tab and no control character, so its places in the line are those in what is shown of it.
    parts = parts_of(line)
    strips, begin = [], 0
    for piece in pieces:
        text = Text(piece, no_wrap=True, end="")
        text.stylize(base)  # rich leaves out the style of a text that has no span
        for part, start, end in parts:
            if start < begin + len(piece) and end > begin:
                text.stylize(_part_style(part, level, palette), max(0, start - begin), end - begin)
        if search is not None:
            for start, end in search.spans(piece):
                text.stylize(palette.hit, start, end)
        strips.append(Strip(text.render(console)))
        begin += len(piece)
    return strips


def with_selection(strip: Strip, span: tuple[int, int], style: Style, console: Console) -> Strip:
    """The strip with the characters from `span[0]` to `span[1]` (-1: the end) in one more style."""
    text = Text("", end="")
    for segment in strip:
        text.append(segment.text, segment.style)
    start, end = span
    text.stylize(style, start, len(text) if end == -1 else end)
    return Strip(text.render(console))


def _part_style(part: str, level: Level, palette: Palette) -> Style:
    if part == "worker":
        return palette.worker
    if part == "level" and level >= Level.WARNING:
        return (palette.error if level is Level.ERROR else palette.warning) + Style(bold=True)
    return palette.dim
