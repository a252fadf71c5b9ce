"""A question before something is lost."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs


class Confirm(Dialog[bool]):
    """Says what will be lost and asks: True, False, or None where the operator goes back without an answer.

    Enter does nothing: it is pressed too easily.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "act", "yes", id="confirm.yes"),
        Binding("n,q", "keep", "no", id="confirm.no"),
        Binding("escape", "back", "back", id="confirm.back"),
    ]
    DEFAULT_CSS = """
    Confirm > #dialog { max-width: 76; border: round $warning; border-title-color: $warning; }
    """

    def __init__(
        self,
        title: str,
        lost: Sequence[str],
        *,
        act: str,
        keep: str = "leave it",
        back: str = "",
        glyphs: Glyphs | None = None,
    ) -> None:
        """`lost` are the sentences that say what will be lost; `act` and `keep` what the two keys do ("stop gemma").

        `back` is what Escape does, where that is another thing than `keep`.
        """
        super().__init__(printable(title), glyphs)
        self._lost = lost
        self._act = printable(act)
        self._keep = printable(keep)
        self._back = printable(back)

    def compose_body(self) -> ComposeResult:
        for sentence in self._lost:
            yield Static(Content(printable(sentence)), classes="gap")

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        asked = ("y", self._act, "act"), ("n", self._keep, "keep")
        return (*asked, ("Esc", self._back, "back")) if self._back else asked

    def action_act(self) -> None:
        self.dismiss(True)

    def action_keep(self) -> None:
        self.dismiss(False)

    def action_back(self) -> None:
        self.dismiss(None)
