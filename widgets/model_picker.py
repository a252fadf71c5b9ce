"""Choosing a model: what lies on this machine, filtered as one types, or one named by hand."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input, Static

from gpudeck.services.models.types import ShelfEntry
from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs, wrap
from gpudeck.widgets.lines import Line, LineView, spread, under
from gpudeck.widgets.model_filter import matching, named_model, size_in_words

_ORIGIN_WIDTH = 9
_SIZE_WIDTH = 9


class ModelRows(LineView):
    """The rows of the picker; the cursor is moved by the field above, or by a click."""

    DEFAULT_CSS = """
    ModelRows { height: 1fr; overflow-x: hidden; background: $surface; scrollbar-background: $surface; }
    """

    class ClickedAgain(Message):
        """A click on the row under the cursor."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._choices: list[ShelfEntry | str] = []
        self._message = ""
        self._current = 0
        self._owners: list[int] = []

    @property
    def chosen(self) -> str | None:
        """The path or hub id under the cursor; None where there is none that can be used."""
        if not 0 <= self._current < len(self._choices):
            return None
        choice = self._choices[self._current]
        if isinstance(choice, str):
            return choice
        return choice.path if choice.problem is None else None

    def show(self, choices: Sequence[ShelfEntry | str], message: str) -> None:
        """Show models, or a typed name as it is; `message` stands below them."""
        before = self._key(self._current)
        self._choices = list(choices)
        keys = [self._key(index) for index in range(len(self._choices))]
        self._current = keys.index(before) if before in keys else 0
        self._message = message
        self.draw()

    def move(self, by: int) -> None:
        if self._choices:
            self._current = min(max(self._current + by, 0), len(self._choices) - 1)
            self.draw()
            rows = [row for row, owner in enumerate(self._owners) if owner == self._current]
            self.keep_visible(rows[0], rows[-1])

    def draw(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        lines: list[Line] = []
        self._owners = []
        for index, choice in enumerate(self._choices):
            rows = self._typed_rows(choice) if isinstance(choice, str) else self._entry_rows(choice, width)
            if index == self._current:
                rows = [under(row, "cursor", width) for row in rows]
            lines += rows
            self._owners += [index] * len(rows)
        if self._message:
            lines += [((f" {text}", "muted"),) for text in wrap(self._message, width - 2)]
        self.show_lines(lines)

    def on_resize(self) -> None:
        self.draw()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        row = event.y + self.scroll_offset.y
        if 0 <= row < len(self._owners):
            again = self._owners[row] == self._current
            self._current = self._owners[row]
            self.draw()
            if again:
                self.post_message(ModelRows.ClickedAgain())

    def _key(self, index: int) -> str | None:
        if not 0 <= index < len(self._choices):
            return None
        choice = self._choices[index]
        return choice if isinstance(choice, str) else choice.path

    def _typed_rows(self, typed: str) -> list[Line]:
        return [((f" {self._glyphs.arrow} ", "primary"), (printable(typed), "strong"), ("  as typed", "muted"))]

    def _entry_rows(self, entry: ShelfEntry, width: int) -> list[Line]:
        glyphs = self._glyphs
        right: Line = (
            (size_in_words(entry.size_bytes).rjust(_SIZE_WIDTH), "text"),
            (f"  {glyphs.fit(_ORIGINS.get(entry.origin, entry.origin), _ORIGIN_WIDTH)} ", "muted"),
        )
        room = width - _SIZE_WIDTH - _ORIGIN_WIDTH - 7
        usable = entry.problem is None
        name = glyphs.cut(printable(entry.name), room)
        path = printable(entry.path)
        sign = ("   ", "") if usable else (f" {glyphs.blocked} ", "error")
        left: Line = (sign, (name, "strong" if usable else "muted"))
        if path != printable(entry.name) and room - cell_len(name) > 12:
            left = (*left, ("  ", ""), (glyphs.shorten(path, room - cell_len(name) - 2), "muted"))
        rows: list[Line] = [spread(left, right, width)]
        if entry.problem is not None:
            rows += [((f"   {text}", "error"),) for text in wrap(printable(entry.problem), width - 4)]
        return rows


_ORIGINS = {"directory": "directory", "gguf": "GGUF", "hub cache": "hub cache"}


class ModelPicker(Dialog[str | None]):
    """Gives back the path or hub id of the model, or None.

    `show_entries` may come after the picker is open; until then it says that the search goes on.  `where` says in one
    sentence where models are looked for.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "pick", "choose", id="models.pick"),
        Binding("escape", "leave", "leave", id="models.leave"),
        Binding("down,ctrl+n", "move(1)", "next", show=False, priority=True, id="models.down"),
        Binding("up,ctrl+p", "move(-1)", "previous", show=False, priority=True, id="models.up"),
        Binding("pagedown", "move(10)", "ten further", show=False, priority=True),
        Binding("pageup", "move(-10)", "ten back", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    ModelPicker > #dialog { height: 80%; }
    ModelPicker Input { background: $panel; margin: 0 0 1 0; }
    ModelPicker #model-note { height: 1; color: $text-muted; margin: 0 0 1 0; }
    """

    def __init__(
        self, entries: Sequence[ShelfEntry] | None = None, *, where: str = "", glyphs: Glyphs | None = None
    ) -> None:
        super().__init__("Model", glyphs)
        self._entries = entries
        self._where = where
        self._rows = ModelRows(self.glyphs)

    def compose_body(self) -> ComposeResult:
        yield Input(placeholder="filter, or a path, a .gguf file, a hub id (owner/name)", compact=True)
        yield self._rows
        yield Static(id="model-note", markup=False)

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        return ("Enter", "choose", "pick"), ("Esc", "leave", "leave")

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._filter()

    def show_entries(self, entries: Sequence[ShelfEntry]) -> None:
        """The models that were found; the cursor stays on its model."""
        self._entries = entries
        if self.is_mounted:
            self._filter()

    @on(ModelRows.ClickedAgain)
    def _clicked_again(self, event: ModelRows.ClickedAgain) -> None:
        event.stop()
        self.action_pick()

    def action_pick(self) -> None:
        chosen = self._rows.chosen
        if chosen is not None:
            self.dismiss(chosen)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_move(self, by: int) -> None:
        self._rows.move(by)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._filter()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        # Enter comes by way of the field, so that what was typed before it has been taken in.
        event.stop()
        self.action_pick()

    def _filter(self) -> None:
        typed = self.query_one(Input).value
        entries = self._entries or ()
        found = matching(entries, typed)
        named = named_model(typed)
        choices: list[ShelfEntry | str] = list(found)
        if named is not None and all(entry.path != named for entry in found):
            choices.insert(0, named)
        self._rows.show(choices, self._message(choices, typed))
        self.query_one("#model-note", Static).update(self._count(len(found)))

    def _message(self, choices: Sequence[ShelfEntry | str], typed: str) -> str:
        if choices:
            return ""
        if self._entries is None:
            return f"Looking for models{self.glyphs.ellipsis} A path or a hub id can be typed meanwhile."
        if typed.strip():
            return "No model here has that in its name or path. A path, a .gguf file or owner/name is taken as typed."
        return (
            f"No model found. {self._where or 'Models are looked for in the usual directories and the hub cache.'} "
            "Type the path of a model directory or a .gguf file, or the hub id of a cached model (owner/name)."
        )

    def _count(self, found: int) -> str:
        if self._entries is None:
            return f"still searching{self.glyphs.ellipsis}"
        total = len(self._entries)
        return f"{found} of {total} {'model' if total == 1 else 'models'}" if total else ""
