"""When an engine is to be restarted by the clock."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs


class ScheduleForm(Dialog[str | None]):
    """Gives back what was typed, "" for never, or None where the operator leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", id="schedule.leave")]
    DEFAULT_CSS = """
    ScheduleForm > #dialog { max-width: 80; }
    ScheduleForm Input { margin: 0 0 1 0; background: $panel; }
    """

    def __init__(self, name: str, when: str, risk: str = "", glyphs: Glyphs | None = None) -> None:
        """`when` is what is set; `risk` says what the reload that this takes can do."""
        super().__init__(f"Restart {printable(name)} by the clock", glyphs)
        self._when, self._risk = when, risk

    def compose_body(self) -> ComposeResult:
        yield Static(
            Content(
                "A systemd timer restarts it, where it runs then: requests in flight end. "
                "Sun 04:00, Mon..Fri 03:30, daily, as man systemd.time has it; empty: never."
            ),
            classes="muted gap",
        )
        if self._risk:
            yield Static(Content(printable(self._risk)), classes="gap")
        yield Input(self._when, placeholder="never", compact=True, select_on_focus=False)

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        return ("Enter", "take over", "take"), ("Esc", "leave as it was", "leave")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def action_take(self) -> None:
        self.dismiss(self.query_one(Input).value.strip())

    def action_leave(self) -> None:
        self.dismiss(None)
