"""One question and its answer, as it grows."""

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs

if TYPE_CHECKING:
    from gpudeck.widgets.answer import AnswerMarkdown

_TAIL_LINES = 3  # of reasoning that is still coming


def shown_text(text: str) -> str:
    """Foreign text of several lines, every control character but the line ends written out."""
    return "\n".join(map(printable, text.replace("\r\n", "\n").split("\n")))


class Reasoning(Static, can_focus=True):
    """What the model thought before it answered: the newest lines while it comes, then folded to one line."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,space", "fold", "fold", id="chat.fold")]
    DEFAULT_CSS = """
    Reasoning {
        color: $text-muted; text-style: italic; height: auto; margin: 0 0 1 0;
        &:focus { background: $primary 15%; }
    }
    """

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(markup=False)
        self._glyphs = glyphs
        self._text = ""
        self._coming = True
        self._open = False

    def add(self, text: str) -> None:
        self._text += text
        self._draw()

    def settle(self) -> None:
        """The answer has begun: fold, unless the operator has opened it."""
        if self._coming:
            self._coming = False
            self._draw()

    def action_fold(self) -> None:
        self._open = not self._open
        self._draw()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.action_fold()

    def _draw(self) -> None:
        words = len(self._text.split())
        count = f"{words:,} {'word' if words == 1 else 'words'}"
        sign = self._glyphs.rule if self._open else self._glyphs.plus
        head = f"{sign} {'reasoning, so far' if self._coming else 'reasoning,'} {count}"
        if self._open:
            body = shown_text(self._text.strip())
        elif self._coming:
            body = shown_text("\n".join(self._text.rstrip()[-1000:].splitlines()[-_TAIL_LINES:]))
        else:
            body = ""
        self.update(Content(f"{head}\n{body}" if body else head))


class Turn(Vertical):
    """A question, the reasoning and answer to it, and a last line with figures or with what went wrong."""

    DEFAULT_CSS = """
    Turn {
        height: auto;
        padding: 0 1;
        & > .question {
            border-left: outer $primary 60%; padding: 0 1; margin: 0 0 1 0; height: auto;
            color: $foreground; background: $panel; width: 1fr;
        }
        &.-ascii > .question { border-left: ascii $primary; }
        & > .note { color: $text-muted; height: auto; margin: 0 0 1 0; }
        & > .note.-failed { color: $error; }
    }
    """

    def __init__(self, question: str, glyphs: Glyphs) -> None:
        super().__init__()
        self.question = question
        self._glyphs = glyphs
        self.set_class(glyphs is Glyphs.ascii(), "-ascii")
        self._reasoning: Reasoning | None = None
        self._answer: AnswerMarkdown | None = None
        self._waiting: Static | None = None

    def compose(self) -> ComposeResult:
        yield Static(Content(shown_text(self.question)), classes="question")
        self._waiting = Static(Content(f"waiting for the first token{self._glyphs.ellipsis}"), classes="note")
        yield self._waiting

    @property
    def answer(self) -> str:
        """The answer so far, as it was shown."""
        return self._answer.source if self._answer is not None else ""

    async def think(self, text: str) -> None:
        """Add to the reasoning."""
        if self._reasoning is None:
            await self._stop_waiting()
            self._reasoning = Reasoning(self._glyphs)
            await self.mount(self._reasoning)
        self._reasoning.add(text)

    async def speak(self, text: str) -> None:
        """Add to the answer; `text` is shown text already."""
        if self._reasoning is not None:
            self._reasoning.settle()
        if self._answer is None:
            from gpudeck.widgets.answer import AnswerMarkdown

            await self._stop_waiting()
            self._answer = AnswerMarkdown(ascii_only=self._glyphs is Glyphs.ascii())
            await self.mount(self._answer)
        await self._answer.append(text)

    async def note(self, sentence: str) -> None:
        """Say something that is no part of the answer, where it stands now."""
        await self.mount(Static(Content(printable(sentence)), classes="note"), before=self._waiting)

    async def end(self, sentence: str, *, failed: bool) -> None:
        """Close the turn with a last line."""
        await self._stop_waiting()
        if self._reasoning is not None:
            self._reasoning.settle()
        sign = f"{self._glyphs.failed} " if failed else ""
        text = sign + printable(sentence)
        if sentence:
            await self.mount(Static(Content(text), classes="note -failed" if failed else "note"))

    async def _stop_waiting(self) -> None:
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            await waiting.remove()
