"""A short list to choose one line of."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs


class ChoiceList(Dialog[int | None]):
    """Gives back the place of the chosen line, or None.  All text may be foreign."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "leave", id="choice.leave"),
        Binding("j", "down", "down", show=False),
        Binding("k", "up", "up", show=False),
    ]
    DEFAULT_CSS = """
    ChoiceList > #dialog { max-width: 80; }
    ChoiceList OptionList {
        height: auto; max-height: 1fr; border: none; padding: 0; margin: 0 0 1 0; background: $surface;
        &:focus { border: none; }
    }
    """

    def __init__(self, title: str, note: str, lines: Sequence[str], *, act: str, glyphs: Glyphs | None = None) -> None:
        super().__init__(printable(title), glyphs)
        self._note, self._act = note, act
        self._list = OptionList(*(Option(Content(printable(line))) for line in lines))

    def compose_body(self) -> ComposeResult:
        yield Static(Content(printable(self._note)), classes="muted gap")
        yield self._list

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        return ("Enter", self._act, "take"), ("Esc", "leave", "leave")

    def on_mount(self) -> None:
        self._list.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_index)

    def action_take(self) -> None:
        self._list.action_select()

    def action_down(self) -> None:
        self._list.action_cursor_down()

    def action_up(self) -> None:
        self._list.action_cursor_up()

    def action_leave(self) -> None:
        self.dismiss(None)
