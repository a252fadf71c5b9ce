"""A question with more answers than yes and no, whose sentences and answers may change while it stands there."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog, KeyLine
from gpudeck.widgets.glyphs import Glyphs


@dataclass(frozen=True, slots=True)
class Answer:
    """One key (a letter), what it does in words, and what the question then gives back."""

    key: str
    does: str
    result: str


class Question(Dialog[str | None]):
    """Gives back the answer's result, or None where the operator goes back.  Enter does nothing: it is pressed too
    easily.
    """

    DEFAULT_CSS = """
    Question > #dialog { max-width: 76; border: round $warning; border-title-color: $warning; }
    """

    def __init__(
        self, title: str, sentences: Sequence[str], answers: Sequence[Answer], *, glyphs: Glyphs | None = None
    ) -> None:
        """All texts may be foreign."""
        super().__init__(printable(title), glyphs)
        self._sentences = tuple(sentences)
        self._answers = tuple(answers)

    def compose_body(self) -> ComposeResult:
        yield Static(self._text(), classes="gap", id="question-text")

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        answers = tuple(
            (answer.key, printable(answer.does), f"screen.answer('{answer.key}')") for answer in self._answers
        )
        return (*answers, ("Esc", "leave it", "screen.answer('escape')"))

    def ask(self, sentences: Sequence[str], answers: Sequence[Answer]) -> None:
        """Ask this instead."""
        self._sentences, self._answers = tuple(sentences), tuple(answers)
        if self.is_mounted:
            self.query_one("#question-text", Static).update(self._text())
            line = self.query_one(KeyLine)
            line.remove()
            self.query_one("#dialog").mount(KeyLine(*self.keys()))

    def on_key(self, event: events.Key) -> None:
        event.stop()
        self.action_answer(event.key)

    def action_answer(self, key: str) -> None:
        if key in ("escape", "n", "q"):
            self.dismiss(None)
        elif (answer := next((each for each in self._answers if each.key == key), None)) is not None:
            self.dismiss(answer.result)

    def _text(self) -> Content:
        return Content("\n\n".join(printable(sentence) for sentence in self._sentences))
