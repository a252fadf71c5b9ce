"""Every key on one page, grouped by pane."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ItemGrid, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs

_KEY_WIDTH = 18


@dataclass(frozen=True, slots=True)
class HelpGroup:
    """The keys of one pane: (what is pressed, what it does)."""

    title: str
    keys: tuple[tuple[str, str], ...]


class HelpPage(Dialog[None]):
    """The keys, in as many columns as fit."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,enter", "close", "close", id="help.close")
    ]
    DEFAULT_CSS = """
    HelpPage > #dialog { max-width: 150; }
    HelpPage ItemGrid { height: auto; grid-gutter: 1 2; }
    HelpPage ItemGrid > Static { width: 1fr; }
    """

    def __init__(self, groups: Sequence[HelpGroup], *, glyphs: Glyphs | None = None) -> None:
        super().__init__("Keys", glyphs)
        self._groups = groups

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(), ItemGrid(min_column_width=42):
            for group in self._groups:
                yield Static(self._group(group))

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        return (("Esc", "close", "close"),)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def action_close(self) -> None:
        self.dismiss(None)

    @staticmethod
    def _group(group: HelpGroup) -> Content:
        lines = [Content.styled(group.title, "bold $primary")]
        for key, does in group.keys:
            lines.append(Content.assemble((key.ljust(_KEY_WIDTH), "bold"), (f" {does}", "$foreground 65%")))
        return Content("\n").join(lines)
