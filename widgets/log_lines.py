"""The lines of an engine's log on screen, following the end as it grows.

Lines are kept in a ring; only those that are visible are parsed and coloured, and however many come, the view moves at
most `DRAWS_A_SECOND` times a second.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.cache import LRUCache
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from gpudeck.services.engine.types import LogLine
from gpudeck.services.text import printable
from gpudeck.widgets.log_buffer import LogBuffer
from gpudeck.widgets.log_line import Level, brief, worker_of
from gpudeck.widgets.log_paint import Palette, paint, with_selection
from gpudeck.widgets.log_rows import LogRows, width_of, wrapped
from gpudeck.widgets.log_search import LogSearch
from gpudeck.widgets.messages import LogChanged
from gpudeck.widgets.pace import Pace

DRAWS_A_SECOND = 15  # with what a busy panel adds, a frame each tenth of a second
BRIEF_BELOW = 120  # columns
_STYLES = ("dim", "worker", "warning", "error", "hit", "current")


class LogLines(ScrollView):
    """Draws a `LogBuffer`.  `extend` may be called as often as lines come."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"log-view--{name}" for name in _STYLES}
    DEFAULT_CSS = """
    LogLines {
        background: $surface;
        color: $foreground;
        overflow-x: auto;
        overflow-y: scroll;
        scrollbar-size: 0 1;
        scrollbar-background: $surface;
        scrollbar-corner-color: $surface;
        & > .log-view--dim { color: $text-muted; }
        & > .log-view--worker { color: $secondary; }
        & > .log-view--warning { color: $warning; }
        & > .log-view--error { color: $error; }
        & > .log-view--hit { background: $accent; color: $background; }
        & > .log-view--current { background: $primary 25%; }
    }
    """

    def __init__(self, buffer: LogBuffer | None = None, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.buffer = LogBuffer() if buffer is None else buffer
        self.following = True
        self.level = Level.PLAIN  # lines below it are left out
        self.worker: str | None = None  # only this process's lines
        self.brief: bool | None = None  # whether prefixes are short; None: where the view is narrow
        self.ellipsis = "…"  # marks a row that goes on beyond the view
        self.search: LogSearch | None = None
        self.current: int | None = None  # the line that a jump went to
        self._rows = LogRows(self.buffer)
        self._width = 0  # of the widest line that was measured
        self._seen_end = 0  # one past the newest line that was in view
        self._drawn_brief = False
        self._colours: Palette | None = None
        self._moving = False
        self._pace = Pace(self, 1 / DRAWS_A_SECOND, self._draw)
        self._strips: LRUCache[tuple[int, int | None], list[Strip]] = LRUCache(128)

    def extend(self, lines: Sequence[LogLine]) -> None:
        """Take in lines, oldest first.  Only the thread of the screen may call this."""
        if lines:
            self.buffer.extend(lines)
            self._draw_soon()

    @property
    def new_below(self) -> int:
        """How many lines have come below what was last in view."""
        return 0 if self.following else max(0, self.buffer.end - max(self._seen_end, self.buffer.first))

    @property
    def skipped(self) -> int:
        """How many lines are no longer held."""
        return self.buffer.first

    @property
    def is_brief(self) -> bool:
        return self.scrollable_content_region.width < BRIEF_BELOW if self.brief is None else self.brief

    @property
    def wrapping(self) -> bool:
        return self._rows.wrap_width is not None

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if not self._moving and round(old_value) != round(new_value):
            at_end = new_value >= self.max_scroll_y
            if at_end != self.following:
                self._seen_end = self.buffer.end
                self.following = at_end
            self._note_seen()
            self._tell()

    def _move(self, row: int) -> None:
        """Scroll by our own hand, which says nothing about the operator's wish to follow."""
        self._moving = True
        self.scroll_to(y=row, animate=False, force=True, immediate=True)
        self._moving = False

    def _top_line(self) -> int:
        found = self._rows.locate(self.scroll_offset.y)
        return found[0] if found else self.buffer.first

    def _note_seen(self) -> None:
        found = self._rows.locate(min(self.scroll_offset.y + self.size.height, self._rows.height) - 1)
        if found:
            self._seen_end = max(self._seen_end, found[0] + 1)

    def on_mount(self) -> None:
        self._refresh_scrollbars()
        self._arrange(wrap=False)

    def on_resize(self, _event: events.Resize) -> None:
        width = self.scrollable_content_region.width
        if width > 0 and ((self.wrapping and width != self._rows.wrap_width) or self.is_brief != self._drawn_brief):
            self._arrange(wrap=self.wrapping)
        elif self.following:
            self._move(self._rows.height)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._colours = None
        self._strips.clear()

    def selection_updated(self, _selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected rows as they are shown."""
        last = self._rows.height - 1
        first = selection.start.y if selection.start else 0
        pieces = []
        for row in range(max(first, 0), min(selection.end.y if selection.end else last, last) + 1):
            span = selection.get_span(row)
            if span is not None:
                start, end = span
                piece = self._piece(row)
                pieces.append(piece[start:] if end == -1 else piece[start:end])
        return "\n".join(pieces), "\n"

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        row = scroll_y + y
        width = self.scrollable_content_region.width
        found = self._rows.locate(row)
        if found is None or found[0] < self.buffer.first:
            return Strip.blank(width, self.rich_style)
        number, piece = found
        style = self.rich_style
        if number == self.current:
            style += self._palette().current
        strips = self._strips_of(number)
        strip = strips[min(piece, len(strips) - 1)]
        if self.text_selection is not None and (span := self.text_selection.get_span(row)) is not None:
            selected = self.screen.get_component_rich_style("screen--selection")
            strip = with_selection(strip, span, selected, self.app.console)
        return self._cut(strip, scroll_x, width, style).apply_offsets(scroll_x, row)

    def _cut(self, strip: Strip, start: int, width: int, style: Style) -> Strip:
        """What is seen of a row, with a mark at an edge that it goes on behind; there is no scroll bar to tell."""
        mark = Strip([Segment(self.ellipsis, style + self._palette().dim)], 1)
        goes_on, end = strip.cell_length > start + width, start + width
        seen = strip.crop_extend(start, end, style)
        if goes_on:
            seen = Strip.join([seen.crop(0, width - 1), mark])
        return Strip.join([mark, seen.crop(1, width)]) if start and strip.cell_length > 1 else seen

    def _draw_soon(self) -> None:
        if self.is_attached:
            self._pace.soon()

    def _draw(self) -> None:
        """Bring rows, scroll bar and screen up to what the buffer holds."""
        gone = self._rows.sync()
        if self.search is not None:
            self.search.sync()
        if not self.wrapping:
            newest = range(max(self.buffer.first, self.buffer.end - 200), self.buffer.end)
            self._width = max([self._width, *(width_of(self._form(self.buffer.text(number))) for number in newest)])
        self._resize_content()
        if self.following:
            self._move(self._rows.height)
            self._seen_end = self.buffer.end
        elif gone:
            self._move(max(0, self.scroll_offset.y - gone))
        self.refresh()
        self._tell()

    def _resize_content(self) -> None:
        size = Size(self.scrollable_content_region.width if self.wrapping else self._width, self._rows.height)
        if size != self.virtual_size:
            # Through the reactive a change would lay out the whole screen anew, many times a second.
            self.set_reactive(LogLines.virtual_size, size)
            self._refresh_scrollbars()
            self._scroll_update(size)

    def _arrange(self, *, wrap: bool) -> None:
        """Lay every line out anew; the line at the top stays there."""
        top = self._top_line()
        # Hidden, the view has no width; it is laid out anew when it is shown.
        width = max(2, self.scrollable_content_region.width or self._rows.wrap_width or 80) if wrap else None
        self._strips.clear()
        self._drawn_brief = self.is_brief
        self._width = 0
        self._rows.arrange(keep=self._keep(), width=width, form=brief if self._drawn_brief else str)
        if self.is_attached:
            self._draw()
            if not self.following:
                self._move(self._rows.row(top))

    def _keep(self) -> Callable[[int], bool] | None:
        level, worker, buffer = self.level, self.worker, self.buffer
        if level <= Level.PLAIN and worker is None:
            return None
        if worker is None:
            return lambda number: buffer.level(number) >= level
        return lambda number: buffer.level(number) >= level and worker_of(buffer.text(number)) == worker

    def _tell(self) -> None:
        self.post_message(LogChanged())

    def _piece(self, row: int) -> str:
        found = self._rows.locate(row)
        if found is None or found[0] < self.buffer.first:
            return ""
        text = self._form(self.buffer.text(found[0]))
        if self._rows.wrap_width is None:
            return printable(text)
        return wrapped(text, self._rows.wrap_width)[found[1]]

    def _form(self, text: str) -> str:
        return brief(text) if self._drawn_brief else text

    def _strips_of(self, number: int) -> list[Strip]:
        width = self._rows.wrap_width
        key = (number, width)
        strips = self._strips.get(key)
        if strips is None:
            strips = self._strips[key] = self._paint(number, width)
            if width is None and strips[0].cell_length > self._width:
                self._width = strips[0].cell_length
                self.call_next(self._resize_content)
        return strips

    def _paint(self, number: int, width: int | None) -> list[Strip]:
        line = self._form(self.buffer.text(number))
        pieces = [printable(line)] if width is None else wrapped(line, width)
        palette = self._palette()
        if number == self.current:
            palette = replace(palette, base=palette.base + palette.current)
        return paint(line, pieces, self.buffer.level(number), palette, self.app.console, self.search)

    def _palette(self) -> Palette:
        if self._colours is None:
            # Asked for whole, so that colours with an alpha are mixed with what they stand on.
            styles = {name: self.get_component_rich_style(f"log-view--{name}") for name in _STYLES}
            overlays = {name: Style(color=style.color) for name, style in styles.items()}
            overlays["hit"] = styles["hit"]
            overlays["current"] = Style(bgcolor=styles["current"].bgcolor)
            self._colours = Palette(base=self.rich_style, **overlays)
        return self._colours
