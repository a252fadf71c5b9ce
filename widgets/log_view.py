"""The log with its keys: search, jumps, filters, wrapping, pause."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from gpudeck.services.text import printable
from gpudeck.widgets.log_buffer import LogBuffer
from gpudeck.widgets.log_line import Level, worker_of
from gpudeck.widgets.log_lines import LogLines
from gpudeck.widgets.log_rows import LogRows
from gpudeck.widgets.log_search import LogSearch
from gpudeck.widgets.messages import LogCopyAsked, LogReasonAsked, LogSaveAsked, LogSearchAsked, LogStartsAsked


class LogView(LogLines, can_focus=True):
    """A log that grows and can be read meanwhile."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "ask_search", "search", id="log.search"),
        Binding("n", "hit(1)", "next hit", show=False, id="log.next"),
        Binding("N", "hit(-1)", "previous hit", show=False, id="log.previous"),
        Binding("e", "first_error", "first error", id="log.error"),
        Binding("E", "next_error", "next error", show=False, id="log.next-error"),
        Binding("r", "reason", "why it died", id="log.reason"),
        Binding("h", "starts", "earlier starts", id="log.starts"),
        Binding("l", "level", "level", id="log.level"),
        Binding("W", "worker", "worker", show=False, id="log.worker"),
        Binding("b", "brief", "brief", id="log.brief"),
        Binding("w", "wrap", "wrap", id="log.wrap"),
        Binding("space,p", "pause", "pause", id="log.pause"),
        Binding("y", "copy", "copy what is selected, or else in view", show=False, id="log.copy"),
        Binding("S", "save", "save to a file", show=False, id="log.save"),
        Binding("up,k", "scroll_up", "up", show=False),
        Binding("down,j", "scroll_down", "down", show=False),
        Binding("home,g", "scroll_home", "oldest", show=False),
        Binding("end,G", "scroll_end", "newest", show=False, id="log.end"),
    ]
    HELP = "The selected engine's log, as its unit writes it."

    _search_from = 0  # the line from which a search looks back
    reason: int | None = None  # the line that says why the engine died, where it is known

    def clear(self) -> None:
        """Forget everything: another log begins."""
        self.buffer.clear(end=0)
        self.buffer.left_out = 0
        self.show_buffer(self.buffer)

    def show_buffer(self, buffer: LogBuffer) -> None:
        """Show these lines from their end, without a filter or a search."""
        wrapping = self.wrapping
        if buffer is not self.buffer:
            self.buffer, self._rows = buffer, LogRows(buffer)
        self.search = self.current = self.worker = self.reason = None
        self.level = Level.PLAIN
        self._width = self._seen_end = 0
        self.following = True
        self._arrange(wrap=wrapping)

    def set_search(self, query: str) -> None:
        """Mark the lines that hold `query` and go to the last of them that came before the search was begun there.

        Begun at the end that is the newest; "" ends the search.
        """
        self.search = LogSearch(self.buffer, query) if query else None
        self._strips.clear()
        if self.search is not None and self.search.hits:
            self._go_to(self.search.step(self._search_from, -1))
        self._tell()
        self.refresh()

    def set_filter(self, *, level: Level = Level.PLAIN, worker: str | None = None) -> None:
        """Leave out lines below `level`, and those of other processes than `worker`."""
        self.level, self.worker = level, worker
        self._arrange(wrap=self.wrapping)

    def text(self, rows: range | None = None) -> str:
        """Every line that is held and passes the filter, or those on `rows`, whole; control characters written out."""
        found = map(self._rows.locate, range(self._rows.height) if rows is None else rows)
        numbers = dict.fromkeys(place[0] for place in found if place is not None and place[0] >= self.buffer.first)
        return "".join(f"{printable(self.buffer.text(number))}\n" for number in numbers)

    def action_ask_search(self) -> None:
        below = self._rows.locate(self.scroll_offset.y + self.size.height)
        self._search_from = self.buffer.end if self.following or below is None else below[0]
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

    def action_reason(self) -> None:
        """Go to the line that says why the engine died, or ask for that of an earlier start."""
        if self.reason is not None and self.reason >= self.buffer.first:
            self._go_to(self.reason)
        else:
            self.post_message(LogReasonAsked())

    def action_starts(self) -> None:
        self.post_message(LogStartsAsked())

    def action_copy(self) -> None:
        """What is selected with the mouse, or else the lines in view."""
        selected = self.get_selection(self.text_selection) if self.text_selection is not None else None
        top = self.scroll_offset.y
        self.post_message(LogCopyAsked(selected[0] if selected else self.text(range(top, top + self.size.height))))

    def action_save(self) -> None:
        self.post_message(LogSaveAsked(self.text()))

    def action_level(self) -> None:
        """All lines, then warnings and errors, then errors alone."""
        after = {Level.PLAIN: Level.WARNING, Level.WARNING: Level.ERROR}
        self.set_filter(level=after.get(self.level, Level.PLAIN), worker=self.worker)

    def action_worker(self) -> None:
        """The lines of all processes, then those of each by itself."""
        found = {worker_of(self.buffer.text(number)) for number in range(self.buffer.first, self.buffer.end)}
        workers = sorted(worker for worker in found if worker is not None)
        after = workers.index(self.worker) + 1 if self.worker in workers else 0
        self.set_filter(level=self.level, worker=workers[after] if after < len(workers) else None)

    def action_brief(self) -> None:
        """Prefixes short or as they came, whatever the width."""
        self.brief = not self.is_brief
        self._arrange(wrap=self.wrapping)

    def action_wrap(self) -> None:
        self._arrange(wrap=not self.wrapping)

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

    def _go_to(self, number: int | None) -> None:
        """Show a line, a third of the way down, and stay there."""
        if number is None:
            return
        keep = self._keep()
        if keep is not None and not keep(number):
            self.set_filter()  # it would not be in view
        self._draw()
        self._seen_end = self.buffer.end if self.following else self._seen_end
        self.following = False
        self.current = number
        self._move(max(0, self._rows.row(number) - self.size.height // 3))
        self._strips.clear()
        self.refresh()
        self._tell()
