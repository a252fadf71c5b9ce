"""The names of the panes, on screens that show one pane at a time."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Tab, Tabs


class PaneTabs(Tabs):
    """Arrows move along the panes and keep the focus here; Enter, Down or a click goes into the pane."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,down", "enter_pane", "Into the pane", id="tabs.enter")]
    DEFAULT_CSS = """
    PaneTabs { height: 1; }
    PaneTabs Underline { display: none; }
    PaneTabs Tab { padding: 0 2; color: $foreground 65%; }
    PaneTabs Tab.-active { background: $primary 30%; color: $foreground; text-style: bold; }
    PaneTabs:focus Tab.-active { background: $primary; color: $background; }
    """

    class Entered(Message):
        """The operator goes into the pane whose tab is active."""

    def __init__(self, panes: Sequence[str], active: str, *, id: str | None = None) -> None:
        """`panes` are their names; each is shown with its number, the key that opens it."""
        tabs = (Tab(f"{number} {pane.capitalize()}", id=f"tab-{pane}") for number, pane in enumerate(panes, 1))
        super().__init__(*tabs, active=f"tab-{active}", id=id)

    @property
    def pane(self) -> str:
        return self.active.removeprefix("tab-")

    def turn_to(self, pane: str) -> None:
        self.active = f"tab-{pane}"

    def action_enter_pane(self) -> None:
        self.post_message(self.Entered())

    def on_click(self) -> None:
        # A tab has taken the click itself by now: it is the active one.
        self.call_after_refresh(self.action_enter_pane)
