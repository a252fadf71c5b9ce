"""Choosing a model: what lies on this machine, filtered as one types, or one named by hand."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from gpudeck.services.models.types import ShelfEntry
from gpudeck.services.plan.fit import Fit
from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.messages import ModelPicked
from gpudeck.widgets.model_filter import ORDERS, in_order, matching, named_model
from gpudeck.widgets.model_rows import ModelRows


class ModelPicker(Dialog[str | None]):
    """Posts `ModelPicked` with a path or hub id, and stays until the app has read that model, or says why not.

    Gives back that path, or None where the operator leaves it.

    `show_entries` may come after the picker is open; until then it says that the search goes on.  `where` says in one
    sentence where models are looked for.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "pick", "choose", id="models.pick"),
        Binding("escape", "leave", "leave", id="models.leave"),
        Binding("down,ctrl+n", "move(1)", "next", show=False, priority=True, id="models.down"),
        Binding("up,ctrl+p", "move(-1)", "previous", show=False, priority=True, id="models.up"),
        Binding("ctrl+s", "sort", "sort", priority=True, id="models.sort"),
        Binding("pagedown", "move(10)", "ten further", show=False, priority=True),
        Binding("pageup", "move(-10)", "ten back", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    ModelPicker > #dialog { height: 80%; }
    ModelPicker Input { background: $panel; margin: 0 0 1 0; }
    ModelPicker #model-note { height: auto; max-height: 4; color: $text-muted; margin: 0 0 1 0; }
    ModelPicker #model-note.-wrong { color: $text-error; }
    """

    def __init__(
        self, entries: Sequence[ShelfEntry] | None = None, *, where: str = "", glyphs: Glyphs | None = None
    ) -> None:
        super().__init__("Model", glyphs)
        self._entries = entries
        self._where = where
        self._fits: dict[str, Fit] = {}
        self._weighed = False
        self._order = ORDERS[0]
        self._reading = ""  # the path that was picked
        self._rows = ModelRows(self.glyphs)

    def compose_body(self) -> ComposeResult:
        yield Input(placeholder="filter, or a path, a .gguf file, a hub id (owner/name)", compact=True)
        yield self._rows
        yield Static(id="model-note", markup=False)

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        return ("Enter", "choose", "pick"), ("Ctrl+S", "sort", "sort"), ("Esc", "leave", "leave")

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._filter()

    def show_entries(self, entries: Sequence[ShelfEntry]) -> None:
        """The models that were found; the cursor stays on its model."""
        self._entries = entries
        if self.is_mounted:
            self._filter()

    def show_fits(self, fits: Mapping[str, Fit]) -> None:
        """How models fit the box now, by path; those that are not told yet are still being weighed."""
        self._fits.update(fits)
        self._weighed = True
        if self.is_mounted:
            self._filter()

    def refuse(self, path: str, sentence: str) -> None:
        """The picked model can not be read: say why, and let the operator pick another."""
        if path == self._reading:
            self._reading = ""
            note = self.query_one("#model-note", Static)
            note.set_class(True, "-wrong")
            note.update(f"{self.glyphs.blocked} {printable(sentence)}")

    @on(ModelRows.ClickedAgain)
    def _clicked_again(self, event: ModelRows.ClickedAgain) -> None:
        event.stop()
        self.action_pick()

    def action_pick(self) -> None:
        chosen = self._rows.chosen
        if chosen is not None:
            self._reading = chosen
            self._note(f"Reading {printable(chosen)}{self.glyphs.ellipsis}")
            self.post_message(ModelPicked(chosen))

    def action_sort(self) -> None:
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self._filter()

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
        found = in_order(matching(entries, typed), self._order, self._fits)
        named = named_model(typed)
        choices: list[ShelfEntry | str] = list(found)
        if named is not None and all(entry.path != named for entry in found):
            choices.insert(0, named)
        self._rows.show(choices, self._message(choices, typed), self._fits, weighed=self._weighed)
        self._note(self._count(len(found)))

    def _note(self, words: str) -> None:
        note = self.query_one("#model-note", Static)
        note.set_class(False, "-wrong")
        note.update(words)

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
        if not total:
            return ""
        count = f"{found} of {total} {'model' if total == 1 else 'models'}, by {self._order}"
        weighed = sum(entry.path in self._fits for entry in self._entries if entry.problem is None)
        usable = sum(entry.problem is None for entry in self._entries)
        return f"{count}; {weighed} of {usable} weighed" if self._weighed and weighed < usable else count
