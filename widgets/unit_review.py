"""All that is to be said of an engine's unit: what was changed behind gpudeck's back, and what is wrong with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.question import Answer

_TONES = {"error": "$error", "warning": "$warning", "info": "$foreground 65%"}


@dataclass(frozen=True, slots=True)
class Section:
    """Sentences, each with its tone ("error", "warning", "info", "" for plain), and a unified diff below them.

    All text may be foreign.
    """

    sentences: tuple[tuple[str, str], ...]
    diff: str = ""


class UnitReview(Dialog[str | None]):
    """Gives back the result of the answer whose key was pressed, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n,enter", "answer('escape')", "close", id="unit-review.close")
    ]
    DEFAULT_CSS = """
    UnitReview #dialog { height: 92%; }
    UnitReview VerticalScroll { height: 1fr; margin: 0 0 1 0; }
    """

    def __init__(
        self, title: str, sections: Sequence[Section], answers: Sequence[Answer], *, glyphs: Glyphs | None = None
    ) -> None:
        super().__init__(printable(title), glyphs)
        self._sections = tuple(sections)
        self._answers = tuple(answers)

    def compose_body(self) -> ComposeResult:
        with VerticalScroll():
            for section in self._sections:
                yield Static(self._section(section), classes="gap")

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        answers = tuple(
            (answer.key, printable(answer.does), f"screen.answer('{answer.key}')") for answer in self._answers
        )
        return (*answers, ("Esc", "close", "screen.answer('escape')"))

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def on_key(self, event: events.Key) -> None:
        if any(answer.key == event.key for answer in self._answers):
            event.stop()
            self.action_answer(event.key)

    def action_answer(self, key: str) -> None:
        self.dismiss(next((answer.result for answer in self._answers if answer.key == key), None))

    def _section(self, section: Section) -> Content:
        sign = {"error": self.glyphs.blocked, "warning": self.glyphs.caution, "info": self.glyphs.info}
        lines = [
            Content.assemble((f"{sign[tone]} ", _TONES[tone]), printable(text)) if tone else Content(printable(text))
            for text, tone in section.sentences
        ]
        return Content("\n").join([*lines, *map(_diff_line, section.diff.splitlines())])


def _diff_line(line: str) -> Content:
    style = {"+": "$success", "-": "$error", "@": "$foreground 65%"}.get(line[:1], "$foreground 65%")
    return Content.styled(f"  {printable(line)}", style)
