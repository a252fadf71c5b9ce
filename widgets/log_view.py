"""The lines of an engine's log on screen: follows the end, searches, filters, wraps.

Lines are kept in a ring; only those that are visible are parsed and coloured, and however many come, the view moves at
most `DRAWS_A_SECOND` times a second.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer

from gpudeck.services.engine.types import LogLine
from gpudeck.services.text import printable
from gpudeck.widgets.log_buffer import LogBuffer
from gpudeck.widgets.log_line import Level, level_of, parts_of, worker_of
from gpudeck.widgets.log_rows import LogRows, width_of, wrapped
from gpudeck.widgets.log_search import LogSearch
from gpudeck.widgets.messages import LogChanged, LogSearchAsked

DRAWS_A_SECOND = 12


class LogView(ScrollView, can_focus=True):
    """A log that grows.  `extend` may be called as often as lines come."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "ask_search", "search", id="log.search"),
        Binding("n", "hit(1)", "next hit", show=False, id="log.next"),
        Binding("N", "hit(-1)", "previous hit", show=False, id="log.previous"),
        Binding("e", "first_error", "first error", id="log.error"),
        Binding("E", "next_error", "next error", show=False, id="log.next-error"),
        Binding("l", "level", "level", id="log.level"),
        Binding("w", "wrap", "wrap", id="log.wrap"),
        Binding("space,p", "pause", "pause", id="log.pause"),
        Binding("up,k", "scroll_up", "up", show=False),
        Binding("down,j", "scroll_down", "down", show=False),
        Binding("home,g", "scroll_home", "oldest", show=False),
        Binding("end,G", "scroll_end", "newest", show=False, id="log.end"),
    ]
    HELP = "The selected engine's log, as its unit writes it."
    ALLOW_SELECT = True

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log-view--dim",
        "log-view--worker",
        "log-view--info",
        "log-view--warning",
        "log-view--error",
        "log-view--hit",
        "log-view--current",
    }
    DEFAULT_CSS = """
    LogView {
        background: $surface;
        color: $foreground;
        overflow-x: auto;
        overflow-y: scroll;
        scrollbar-size: 1 1;
        scrollbar-background: $surface;
        scrollbar-corner-color: $surface;
        & > .log-view--dim { color: $text-muted; }
        & > .log-view--worker { color: $secondary; }
        & > .log-view--info { color: $text-muted; }
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
        self.search: LogSearch | None = None
        self.current: int | None = None  # the line that a jump went to
        self._rows = LogRows(self.buffer)
        self._width = 0
        self._seen_end = 0  # one past the newest line that was in view
        self._moving = False
        self._pending: Timer | None = None
        self._strips: LRUCache[tuple[int, int | None], list[Strip]] = LRUCache(512)

    # -- what the app calls

    def extend(self, lines: Sequence[LogLine]) -> None:
        """Take in lines, oldest first.  Only the thread of the screen may call this."""
        if lines:
            self.buffer.extend(lines)
            self._draw_soon()

    def clear(self) -> None:
        """Forget everything: another engine's log begins."""
        self.buffer.clear(end=0)
        self.search, self.current, self.worker, self.level = None, None, None, Level.PLAIN
        self._width = self._seen_end = 0
        self.following = True
        self._arrange()

    def set_search(self, query: str) -> None:
        """Mark the lines that hold `query` and go to the newest of them; "" ends the search."""
        self.search = LogSearch(self.buffer, query) if query else None
        self._strips.clear()
        if self.search is not None and self.search.hits:
            self._go_to(self.search.step(self._top_line() - 1, 1))
        self._tell()
        self.refresh()

    def set_filter(self, *, level: Level = Level.PLAIN, worker: str | None = None) -> None:
        """Leave out lines below `level`, and those of other processes than `worker`."""
        self.level, self.worker = level, worker
        self._arrange()

    @property
    def new_below(self) -> int:
        """How many lines have come below what was last in view."""
        return 0 if self.following else max(0, self.buffer.end - max(self._seen_end, self.buffer.first))

    @property
    def skipped(self) -> int:
        """How many lines are no longer held."""
        return self.buffer.first

    @property
    def wrapping(self) -> bool:
        return self._rows.wrap_width is not None

    def text(self) -> str:
        """Every line that is held and passes the filter, as it came: for a file or the clipboard."""
        lines = (self._rows.locate(row) for row in range(self._rows.height))
        return "".join(f"{self.buffer.text(found[0])}\n" for found in lines if found is not None and found[1] == 0)

    # -- keys

    def action_ask_search(self) -> None:
        self.post_message(LogSearchAsked())

    def action_hit(self, direction: int) -> None:
        if self.search is not None:
            here = self.current if self.current is not None else self._top_line()
            self._go_to(self.search.step(here, direction))

    def action_first_error(self) -> None:
        errors = self.buffer.errors
        if errors:
            self._go_to(errors[0])

    def action_next_error(self) -> None:
        here = self._top_line() if self.current is None else self.current
        self._go_to(next((number for number in self.buffer.errors if number > here), None))

    def action_level(self) -> None:
        """All lines, then warnings and errors, then errors alone."""
        after = {Level.PLAIN: Level.WARNING, Level.WARNING: Level.ERROR}
        self.set_filter(level=after.get(self.level, Level.PLAIN), worker=self.worker)

    def action_wrap(self) -> None:
        top = self._top_line()
        self._arrange(wrap=not self.wrapping)
        if not self.following:
            self._move(self._rows.row(top))

    def action_pause(self) -> None:
        self._seen_end = self.buffer.end
        self.following = not self.following
        self._draw()

    def action_scroll_home(self) -> None:
        self.following = False
        self._move(0)
        self._tell()

    def action_scroll_end(self) -> None:
        self.following = True
        self.current = None
        self._draw()

    # -- scrolling

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

    def _go_to(self, number: int | None) -> None:
        """Show a line, a third of the way down, and stay there."""
        if number is None:
            return
        if self._pending is not None:
            self._draw()
        self._seen_end = self.buffer.end if self.following else self._seen_end
        self.following = False
        self.current = number
        self._move(max(0, self._rows.row(number) - self.size.height // 3))
        self._strips.clear()
        self.refresh()
        self._tell()

    def _top_line(self) -> int:
        found = self._rows.locate(self.scroll_offset.y)
        return found[0] if found else self.buffer.first

    def _note_seen(self) -> None:
        found = self._rows.locate(min(self.scroll_offset.y + self.size.height, self._rows.height) - 1)
        if found:
            self._seen_end = max(self._seen_end, found[0] + 1)

    # -- drawing

    def on_mount(self) -> None:
        self._refresh_scrollbars()
        self._arrange()

    def on_resize(self, _event: events.Resize) -> None:
        width = self.scrollable_content_region.width
        if self.wrapping and width > 0 and width != self._rows.wrap_width:
            top = self._top_line()
            self._arrange()
            if not self.following:
                self._move(self._rows.row(top))
        elif self.following:
            self._move(self._rows.height)

    def notify_style_update(self) -> None:
        super().notify_style_update()
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
            style += self._part_style("current")
        strips = self._strips_of(number)
        strip = strips[min(piece, len(strips) - 1)]
        if self.text_selection is not None and (span := self.text_selection.get_span(row)) is not None:
            strip = self._with_selection(strip, span)
        return strip.crop_extend(scroll_x, scroll_x + width, style).apply_offsets(scroll_x, row)

    def _draw_soon(self) -> None:
        if self._pending is None and self.is_attached:
            self._pending = self.set_timer(1 / DRAWS_A_SECOND, self._draw)

    def _draw(self) -> None:
        """Bring rows, scroll bar and screen up to what the buffer holds."""
        if self._pending is not None:
            self._pending.stop()
            self._pending = None
        gone = self._rows.sync()
        if self.search is not None:
            self.search.sync()
        if not self.wrapping:
            newest = range(max(self.buffer.first, self.buffer.end - 200), self.buffer.end)
            self._width = max([self._width, *(width_of(self.buffer.text(number)) for number in newest)])
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
            # Through the reactive a change would lay out the whole screen anew, twelve times a second.
            self.set_reactive(LogView.virtual_size, size)
            self._refresh_scrollbars()
            self._scroll_update(size)

    def _arrange(self, *, wrap: bool | None = None) -> None:
        wrap = self.wrapping if wrap is None else wrap
        width = max(2, self.scrollable_content_region.width) if wrap else None
        self._strips.clear()
        self._rows.arrange(keep=self._keep(), width=width)
        if self.is_attached:
            self._draw()

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
        text = self.buffer.text(found[0])
        if self._rows.wrap_width is None:
            return printable(text)
        return wrapped(text, self._rows.wrap_width)[found[1]]

    def _strips_of(self, number: int) -> list[Strip]:
        width = self._rows.wrap_width
        key = (number, width)
        strips = self._strips.get(key)
        if strips is None:
            strips = self._strips[key] = self._paint(number, width)
        return strips

    def _paint(self, number: int, width: int | None) -> list[Strip]:
        raw = self.buffer.text(number)
        pieces = [printable(raw)] if width is None else wrapped(raw, width)
        level = self.buffer.level(number)
        base = self.rich_style
        if level is Level.ERROR or level is Level.WARNING:
            base += self._part_style(level.name.lower())
        if number == self.current:
            base += self._part_style("current")
        # The prefix holds no tab and no control character, so its places in the raw text hold for the shown text too.
        parts = parts_of(raw) if level_of(raw) is level or level is Level.PLAIN else ()
        strips, begin = [], 0
        for piece in pieces:
            text = Text(piece, no_wrap=True, end="")
            text.stylize(base)  # rich leaves out the style of a text that has no span
            for part, start, end in parts:
                if start < begin + len(piece) and end > begin:
                    text.stylize(self._style_for(part, level), max(0, start - begin), end - begin)
            if self.search is not None:
                for start, end in self.search.spans(piece):
                    text.stylize(self._part_style("hit"), start, end)
            strips.append(Strip(text.render(self.app.console)))
            begin += len(piece)
        return strips

    def _style_for(self, part: str, level: Level) -> Style:
        if part == "worker":
            return self._part_style("worker")
        if part == "level" and level >= Level.WARNING:
            return self._part_style(level.name.lower()) + Style(bold=True)
        return self._part_style("dim")

    def _part_style(self, name: str) -> Style:
        # Asked for whole, so that colours with an alpha are mixed with what they stand on.
        style = self.get_component_rich_style(f"log-view--{name}")
        if name == "current":
            return Style(bgcolor=style.bgcolor)
        return style if name == "hit" else Style(color=style.color)

    def _with_selection(self, strip: Strip, span: tuple[int, int]) -> Strip:
        text = Text("", end="")
        for segment in strip:
            text.append(segment.text, segment.style)
        start, end = span
        text.stylize(self.screen.get_component_rich_style("screen--selection"), start, len(text) if end == -1 else end)
        segments: list[Segment] = list(text.render(self.app.console))
        return Strip(segments)
