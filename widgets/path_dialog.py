"""Which file something is saved to, or read from."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs


class PathDialog(Dialog[str | None]):
    """Gives back the path as it was typed, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", id="path.leave")]
    DEFAULT_CSS = """
    PathDialog > #dialog { max-width: 90; }
    PathDialog Input { margin: 0 0 1 0; background: $panel; }
    """

    def __init__(self, title: str, path: str, note: str, *, act: str = "save", glyphs: Glyphs | None = None) -> None:
        """`path` is offered; `note` says what is saved or read, and `act` what Enter does."""
        super().__init__(title, glyphs)
        self._path, self._note, self._act = path, note, act

    def compose_body(self) -> ComposeResult:
        yield Static(Content(printable(self._note)), classes="muted gap")
        yield Input(self._path, compact=True, select_on_focus=False)

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        return ("Enter", self._act, "take"), ("Esc", "leave", "leave")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def action_take(self) -> None:
        self.dismiss(self.query_one(Input).value)

    def action_leave(self) -> None:
        self.dismiss(None)
