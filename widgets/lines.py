"""Prepared lines in a scrolling view that repaints only the rows that changed.

A line is a tuple of spans, a span a text and the names of its styles.  Painters are pure functions that make lines; the
view resolves the names against the theme.  A foreground name sets the colour, `strong` the weight, and a background
name lays a colour under them: "muted cursor" is muted text on the chosen row.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

Span = tuple[str, str]
Line = tuple[Span, ...]

ENGINES = tuple(f"engine-{number}" for number in range(5))  # each engine's own colour; a sixth has the first's again
FOREGROUNDS = ("text", "muted", "faint", "primary", "soft", "accent", "success", "warning", "error", *ENGINES)
BACKGROUNDS = ("card", "track", "cursor", "aim", "aim-success", "aim-warning", "aim-error")


def width_of(line: Line) -> int:
    return sum(cell_len(text) for text, _ in line)


def spread(left: Line, right: Line, width: int) -> Line:
    """Two lines at the two ends of one of `width` cells, a blank at least between them."""
    return (*left, (" " * max(1, width - width_of(left) - width_of(right)), ""), *right)


def under(line: Line, style: str, width: int) -> Line:
    """A whole line of `width` cells with a background under every span that has none of its own."""
    padded = (*line, (" " * max(0, width - width_of(line)), ""))
    return tuple((text, name if has_background(name) else f"{name} {style}".strip()) for text, name in padded if text)


def engine_style(colour: int | None) -> str:
    """The style of an engine's own colour; "" without one."""
    return "" if colour is None else ENGINES[colour % len(ENGINES)]


def has_background(names: str) -> bool:
    return not set(BACKGROUNDS).isdisjoint(names.split())


class LineView(ScrollView):
    """Shows the lines last given to `show_lines`.  Content-sized when `height` or `width` is auto."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line--{name}" for name in (*FOREGROUNDS, *BACKGROUNDS)}
    DEFAULT_CSS = """
    LineView {
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 1;
        scrollbar-color: $foreground 25%;
        scrollbar-background: $foreground 5%;
        scrollbar-background-hover: $foreground 5%;
        scrollbar-background-active: $foreground 5%;
        & > .line--text { color: $foreground; }
        & > .line--muted { color: $foreground 65%; }
        & > .line--faint { color: $foreground 35%; }
        & > .line--primary { color: $text-primary; }
        & > .line--soft { color: $text-primary 60%; }
        & > .line--accent { color: $text-accent; }
        & > .line--success { color: $text-success; }
        & > .line--warning { color: $text-warning; }
        & > .line--error { color: $text-error; }
        & > .line--engine-0 { color: #4a8fdc; }
        & > .line--engine-1 { color: #c46bb4; }
        & > .line--engine-2 { color: #8a8f2e; }
        & > .line--engine-3 { color: #8d7de0; }
        & > .line--engine-4 { color: #2f9aa0; }
        & > .line--cursor { background: $primary 25%; }
        & > .line--track { background: $foreground 10%; }
        & > .line--card { background: $foreground 6%; }
        & > .line--aim { background: $primary 35%; }
        & > .line--aim-success { background: $success 25%; }
        & > .line--aim-warning { background: $warning 25%; }
        & > .line--aim-error { background: $error 25%; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: tuple[Line, ...] = ()
        self._styles: dict[str, Style] = {}
        self._strips: dict[int, Strip] = {}

    @property
    def room(self) -> Size:
        """The cells that lines are seen on: the content without the scrollbars, whose column is always kept free."""
        return self.scrollable_content_region.size

    @property
    def lines(self) -> tuple[Line, ...]:
        return self._lines

    @property
    def plain(self) -> str:
        """What is shown, without styles: one row a line."""
        return "\n".join("".join(text for text, _ in line).rstrip() for line in self._lines)

    def show_lines(self, lines: Sequence[Line], width: int = 0) -> None:
        """Show these lines; rows that stay as they are are not drawn again.

        `width` is the width in cells that can be scrolled to, where that is more than the view shows.
        """
        before, after = self._lines, tuple(lines)
        self._lines = after
        size = Size(width, len(after))
        if size != self.virtual_size:
            auto_height = self.styles.height is not None and self.styles.height.is_auto
            self._strips.clear()
            self.virtual_size = size
            self.refresh(layout=auto_height)
            return
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + self.room.height
        dirty = []
        for y, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                self._strips.pop(y, None)
                if top <= y < bottom:
                    dirty.append(Region(0, y - top, self.size.width, 1))
        if dirty:
            self.refresh(*dirty)

    def notify_style_update(self) -> None:
        self._styles.clear()
        self._strips.clear()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        row = y + scroll_y
        width = self.size.width
        if row >= len(self._lines):
            return Strip.blank(width, self.style_of(""))
        strip = self._strips.get(row)
        if strip is None:
            strip = Strip([Segment(text, self.style_of(names)) for text, names in self._lines[row]])
            self._strips[row] = strip
        return strip.crop_extend(scroll_x, scroll_x + width, self.style_of(""))

    def style_of(self, names: str) -> Style:
        """The style that a span's names stand for in the current theme."""
        style = self._styles.get(names)
        if style is None:
            style = self.get_component_rich_style("line--text")
            for name in names.split():
                if name == "strong":
                    style += Style(bold=True)
                    continue
                named = self.get_component_rich_style(f"line--{name}")
                style += Style(bgcolor=named.bgcolor) if name in BACKGROUNDS else Style(color=named.color)
            if style.color == style.bgcolor:
                # A theme of sixteen colours knows no shades: red on a touch of red would be red on red.
                style += Style(color=self.get_component_rich_style("line--text").color)
            self._styles[names] = style
        return style

    def keep_visible(self, first: int, last: int) -> None:
        """Scroll as little as is needed to bring rows first to last into view."""
        height = self.room.height
        if not height:
            return
        top = self.scroll_offset.y
        if first < top or last - first >= height:
            self.scroll_to(y=first, animate=False)
        elif last >= top + height:
            self.scroll_to(y=last - height + 1, animate=False)
