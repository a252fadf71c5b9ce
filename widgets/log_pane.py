"""The log with its frame: title, state line, search field, and the way back to the newest line."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from gpudeck.services.engine.types import LogLine
from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs, joined
from gpudeck.widgets.log_buffer import LogBuffer
from gpudeck.widgets.log_line import Level
from gpudeck.widgets.log_view import LogView
from gpudeck.widgets.messages import LogChanged, LogSearchAsked

_LEVEL_WORDS = {Level.WARNING: "warnings and errors only", Level.ERROR: "errors only"}


class NewBelow(Static):
    """How many lines came below; a click goes there."""

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.query_ancestor(LogPane).view.action_scroll_end()


class LogPane(Vertical):
    """What the screens compose: a `LogView` in a frame."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "step_back", "end the search, back to the present run", show=False, id="log.back")
    ]
    DEFAULT_CSS = """
    LogPane {
        border: round $border;
        border-title-color: $text-muted;
        border-subtitle-color: $text-muted;
        background: $surface;
        layers: base over;
        &.-ascii { border: ascii $border; }
        &:focus-within { border: round $primary; border-title-color: $primary; }
        &.-ascii:focus-within { border: ascii $primary; }
        & > LogView { layer: base; height: 1fr; }
        & > #log-empty { layer: over; dock: top; height: auto; margin: 1 2; color: $text-muted; background: $surface; }
        & > NewBelow {
            layer: over; dock: bottom; height: 1; width: 100%; text-align: center;
            background: $primary 25%; color: $foreground; display: none;
        }
        & > Input { display: none; border: none; height: 1; padding: 0 1; background: $panel; }
        &.-searching > Input { display: block; }
    }
    """

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self.set_class(self._glyphs is Glyphs.ascii(), "-ascii")
        self._view = LogView()
        self._view.ellipsis = self._glyphs.ellipsis
        self._engine: str | None = None
        self._present = self._view.buffer  # what is followed, also while an earlier start is in view
        self._reason: int | None = None  # the line of it that says why it died
        self._start = ""  # which one that is, in words

    def compose(self) -> ComposeResult:
        yield self._view
        yield Input(placeholder="search, Enter: newest hit, n and N go on, Escape ends", id="log-search")
        yield Static(id="log-empty", markup=False)
        yield NewBelow(id="log-new", markup=False)

    def on_mount(self) -> None:
        self._describe()

    @property
    def view(self) -> LogView:
        return self._view

    def title_for(self, engine: str | None) -> None:
        """Say whose log this is; None: nobody's."""
        if engine != self._engine:
            self._engine = engine
            self.show_present()
        self._describe()

    def extend(self, lines: Sequence[LogLine], *, reason: int | None = None) -> None:
        """Take in lines of the present run, oldest first.

        `reason` is the place of the line that says why it died, counted from the first line since `clear`.
        """
        if self._start:
            self._present.extend(lines)
        else:
            self._view.reason = reason
            self._view.extend(lines)
        self._reason = reason

    def clear(self) -> None:
        """Forget the present run: another begins.  An earlier start stays in view."""
        self._reason = None
        if self._start:
            self._present.clear(end=0)
            self._present.left_out = 0
            return
        self._view.clear()
        self._end_search()
        self._describe()

    def show_start(self, words: str, lines: Sequence[LogLine], reason: int | None) -> None:
        """Show an earlier start instead of the present run; `words` say which one it is.

        `reason` is the place among `lines` of the one that says why it died.
        """
        self._start = words
        self._end_search()
        past = LogBuffer()
        past.extend(lines)
        self._view.show_buffer(past)
        if reason is not None and reason >= past.first:
            self._view.reason = reason
            self._view.action_reason()
        self._describe()

    def show_present(self) -> None:
        """Show the present run again."""
        if self._start:
            self._start = ""
            self._end_search()
            self._view.show_buffer(self._present)
            self._view.reason = self._reason
            self._describe()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # Escape is only taken where there is something to end; else it goes on to the screen.
        if action == "step_back":
            return self.has_class("-searching") or bool(self._start)
        return super().check_action(action, parameters)

    def action_step_back(self) -> None:
        """End the search, or else leave the earlier start."""
        if not self.has_class("-searching"):
            self.show_present()
            return
        self._end_search()
        self._view.current = None
        self._view.set_search("")
        self._view.focus()

    def _end_search(self) -> None:
        self.query_one(Input).value = ""
        self.remove_class("-searching")

    @on(LogSearchAsked)
    def _open_search(self, event: LogSearchAsked) -> None:
        event.stop()
        self.add_class("-searching")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        event.stop()
        self._view.set_search(event.value)

    @on(Input.Submitted)
    def _keep_search(self, event: Input.Submitted) -> None:
        event.stop()
        self._view.focus()

    @on(LogChanged)
    def _log_changed(self, event: LogChanged) -> None:
        event.stop()
        self._describe()

    def _describe(self) -> None:
        if not self.children:  # not composed yet; on_mount comes back here
            return
        view = self._view
        # As Content: the engine's name is foreign, and a string would be read as markup.
        whose = printable(", ".join(filter(None, (self._engine, self._start))))
        self.border_title = Content(f"Log  {whose}" if self._engine else "Log")
        self.border_subtitle = Content(joined(self._state_words(), self._glyphs.dot))
        new = view.new_below
        below = self.query_one(NewBelow)
        below.display = new > 0
        if new:
            below.update(f"{new:,} new {'line' if new == 1 else 'lines'} below {self._glyphs.dot} End goes there")
        empty = self.query_one("#log-empty", Static)
        empty.display = not len(view.buffer)
        if not len(view.buffer):
            empty.update(
                "Nothing is kept of what it logged."
                if self._start
                else f"Nothing logged yet by {printable(self._engine)}; h lists its earlier starts."
                if self._engine
                else "No engine is selected. Start one from the board, or select one in the engine list."
            )

    def _state_words(self) -> list[str]:
        view = self._view
        words = ["follows" if view.following else "paused, End follows"]
        if self._start:
            words = ["Esc goes back to the present run"]
        errors = len(view.buffer.errors)
        if errors:
            words.append(f"{errors:,} error {'line' if errors == 1 else 'lines'}")
        if view.level in _LEVEL_WORDS:
            words.append(_LEVEL_WORDS[view.level])
        if view.worker is not None:
            words.append(f"{printable(view.worker)} only")
        if view.search is not None:
            hits = len(view.search.hits)
            here = view.search.position(view.current)
            place = f"hit {here:,} of {hits:,}" if here else f"{hits:,} {'hit' if hits == 1 else 'hits'}"
            words.append(f'"{printable(view.search.query)}" {place}')
        if view.wrapping:
            words.append("wrapped")
        if view.buffer.left_out:
            words.append(f"{view.buffer.left_out:,} lines came too fast")
        if view.skipped:
            words.append(f"{view.skipped:,} older lines skipped")
        return words
