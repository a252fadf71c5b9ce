"""The conversation with an engine."""

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static, TextArea

from gpudeck.services.text import printable
from gpudeck.widgets.chat_input import ChatInput
from gpudeck.widgets.chat_turn import Turn, shown_text
from gpudeck.widgets.glyphs import Glyphs, joined
from gpudeck.widgets.messages import (
    AnswerAskedAnew,
    ChatLoadAsked,
    ChatSaveAsked,
    ChatSettingsAsked,
    QuestionEditAsked,
)

# Each piece makes Textual's Markdown parse its last block again: the pieces are gathered, for longer while that block
# is long (a fence of 20,000 characters: about twice a second).
_PAUSE_S = 0.1
_PAUSE_PER_CHARACTER_S = 1 / 50_000
_PAUSE_AT_MOST_S = 1.0
_TURNS_KEPT = 40


class ChatPane(Vertical):
    """Questions, answers as they come, and the field to type in.

    The app answers `ChatSubmitted` with `begin`, any number of `append` and `append_reasoning`, and then `finish` or
    `fail`; it answers `ChatCancelled` with one of the last two.  All are called on the screen's thread, and return at
    once however many pieces come.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "scroll(-1)", "scroll up", show=False, priority=True, id="chat.up"),
        Binding("pagedown", "scroll(1)", "scroll down", show=False, priority=True, id="chat.down"),
        Binding("ctrl+r", "regenerate", "answer anew", id="chat.regenerate"),
        Binding("ctrl+t", "edit", "edit a question", id="chat.edit"),
        Binding("ctrl+o", "settings", "settings", id="chat.settings"),
        Binding("ctrl+s", "save", "save", id="chat.save"),
        Binding("ctrl+g", "load", "load", id="chat.load"),
    ]
    HELP = "A conversation with the selected engine, through its own HTTP port."
    DEFAULT_CSS = """
    ChatPane {
        border: round $border;
        border-title-color: $text-muted;
        border-subtitle-color: $text-muted;
        background: $surface;
        &.-ascii { border: ascii $border; }
        &:focus-within { border: round $primary; border-title-color: $primary; }
        &.-ascii:focus-within { border: ascii $primary; }
        & > VerticalScroll {
            height: 1fr; scrollbar-size-vertical: 1; scrollbar-background: $surface; background: $surface;
        }
        & #chat-empty, & #chat-pruned { color: $text-muted; margin: 1 2; height: auto; }
        & #chat-pruned { display: none; }
    }
    """

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self.set_class(self._glyphs is Glyphs.ascii(), "-ascii")
        self._label = ""
        self._ready = False
        self._turn: Turn | None = None
        self._text: list[str] = []  # what has come and is not shown yet
        self._thoughts: list[str] = []
        self._notes: list[tuple[str, bool]] = []  # with whether it came before the text that waits
        self._held = ""  # a carriage return whose line feed may be in the next piece
        self._answer_tail = ""  # the answer from its last block on, to know how long that block is
        self._end: tuple[str, bool] | None = None
        self._timer: Timer | None = None
        self._pruned = 0

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield Static(id="chat-empty", markup=False)
            yield Static(id="chat-pruned", markup=False)
        yield ChatInput(id="chat-input")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).anchor()
        self._describe()

    @property
    def answering(self) -> bool:
        """Whether an answer is coming."""
        return self._turn is not None

    def set_target(self, label: str, ready: bool) -> None:
        """Say whom the operator talks to ("" : nobody), and whether it can answer."""
        self._label, self._ready = label, ready
        self._describe()

    def focus_input(self) -> None:
        self.query_one(ChatInput).focus()

    def begin(self, user_text: str) -> None:
        """A question was sent; its answer comes by `append`."""
        if self._turn is not None:
            self.fail("Another question was sent before this answer ended.")
        self._close_now()
        self._turn = Turn(user_text, self._glyphs)
        self._text, self._thoughts, self._notes, self._held, self._answer_tail, self._end = [], [], [], "", "", None
        scroll = self.query_one(VerticalScroll)
        scroll.mount(self._turn)
        scroll.anchor()
        self._prune()
        self._describe()

    def append(self, text: str) -> None:
        """More of the answer, as it came from the engine."""
        if self._turn is not None and self._end is None and text:
            self._text.append(text)
            self._show_soon()

    def append_reasoning(self, text: str) -> None:
        """More of the reasoning, as it came from the engine."""
        if self._turn is not None and self._end is None and text:
            self._thoughts.append(text)
            self._show_soon()

    def note(self, sentence: str) -> None:
        """Say something about the answer that is coming, like a tool that the model calls."""
        if self._turn is not None and self._end is None:
            self._notes.append((sentence, not self._text))
            self._show_soon()

    def finish(self, stats: str) -> None:
        """The answer is complete; `stats` are its figures in one line."""
        self._close(stats, failed=False)

    def fail(self, sentence: str) -> None:
        """The answer will not be completed; what had come stays."""
        self._close(sentence, failed=True)

    def clear(self) -> None:
        """Begin a new conversation.  An answer that is coming is let go."""
        self._turn, self._end, self._pruned = None, None, 0
        self.query(Turn).remove()
        self.query_one("#chat-pruned").display = False
        self._describe()

    def drop(self, count: int) -> None:
        """Take the last questions and what was answered off the screen: one of them is asked anew."""
        self._close_now()
        for turn in list(self.query(Turn))[-count:] if count else ():
            turn.remove()
        self._describe()

    def show_past(self, exchanges: Iterable[tuple[str, str]]) -> None:
        """Show questions and answers that came earlier, in the place of what is in view."""
        self.clear()
        for question, answer in exchanges:
            self.begin(question)
            self.append(answer)
            self.finish("")

    def edit(self, question: str, back: int) -> None:
        """Put an earlier question into the field; sent, it is asked in the place of the last `back` ones."""
        self.query_one(ChatInput).put_back(question, back)
        self._describe()

    @property
    def editing(self) -> int:
        """How many questions the one in the field would take the place of."""
        return self.query_one(ChatInput).back

    def action_regenerate(self) -> None:
        self.post_message(AnswerAskedAnew())

    def action_edit(self) -> None:
        self.post_message(QuestionEditAsked(self.editing + 1))

    def action_settings(self) -> None:
        self.post_message(ChatSettingsAsked())

    def action_save(self) -> None:
        self.post_message(ChatSaveAsked())

    def action_load(self) -> None:
        self.post_message(ChatLoadAsked())

    def action_scroll(self, direction: int) -> None:
        scroll = self.query_one(VerticalScroll)
        if direction < 0:
            scroll.scroll_page_up(animate=False)
        else:
            scroll.scroll_page_down(animate=False)

    @on(TextArea.Changed)
    def _typed(self, event: TextArea.Changed) -> None:
        event.stop()

    def _close(self, sentence: str, *, failed: bool) -> None:
        if self._turn is not None and self._end is None:
            self._end = (sentence, failed)
            self._show_soon()

    def _close_now(self) -> None:
        """Let go of a turn whose end could not be drawn yet: it is drawn by a task of its own."""
        turn, end = self._turn, self._end
        if turn is not None and end is not None:
            self.call_next(self._draw, turn, *self._take(last=True), end)
        self._turn = None

    def _show_soon(self) -> None:
        if self._timer is None:
            from_block = len(self._answer_tail) * _PAUSE_PER_CHARACTER_S
            self._timer = self.set_timer(min(_PAUSE_S + from_block, _PAUSE_AT_MOST_S), self._show)

    async def _show(self) -> None:
        turn, end = self._turn, self._end
        if turn is not None:
            await self._draw(turn, *self._take(last=end is not None), end)
            if end is not None and turn is self._turn:
                self._turn = None
                self._describe()
        self._timer = None
        if self._text or self._thoughts or self._notes or (self._turn is not None and self._end is not None):
            self._show_soon()

    def _take(self, *, last: bool) -> tuple[str, str, list[tuple[str, bool]]]:
        text, thoughts = self._held + "".join(self._text), "".join(self._thoughts)
        notes = self._notes
        self._text, self._thoughts, self._notes, self._held = [], [], [], ""
        if text.endswith("\r") and not last:
            text, self._held = text[:-1], "\r"
        shown = shown_text(text)
        self._answer_tail = self._open_block(self._answer_tail + shown)
        return shown, thoughts, notes

    async def _draw(
        self, turn: Turn, text: str, thoughts: str, notes: list[tuple[str, bool]], end: tuple[str, bool] | None
    ) -> None:
        if not turn.is_attached:
            return
        if thoughts:
            await turn.think(thoughts)
        for note, early in notes:
            if early:
                await turn.note(note)
        if text:
            await turn.speak(text)
        for note, early in notes:
            if not early:
                await turn.note(note)
        if end is not None:
            sentence, failed = end
            await turn.end(sentence, failed=failed)

    @staticmethod
    def _open_block(answer: str) -> str:
        """The end of an answer from where its last block begins."""
        if answer.count("```") % 2:
            return answer[answer.rfind("```") :]
        return answer[max(answer.rfind("\n\n"), 0) :]

    def _prune(self) -> None:
        turns = list(self.query(Turn))
        for turn in turns[:-_TURNS_KEPT]:
            turn.remove()
            self._pruned += 1
        if self._pruned:
            pruned = self.query_one("#chat-pruned", Static)
            pruned.display = True
            pruned.update(f"{self._pruned:,} earlier questions are no longer shown.")

    def _describe(self) -> None:
        if not self.children:  # not composed yet; on_mount comes back here
            return
        label = printable(self._label)
        field = self.query_one(ChatInput)
        field.busy, field.ready = self.answering, self._ready
        field.refresh_bindings()
        self.border_title = Content(f"Chat  {label}" if label else "Chat")
        if self.answering:
            words = [f"answering{self._glyphs.ellipsis}"]
        elif field.back:
            words = ["editing: Enter asks this in its place", "Esc: leave it"]
        elif self._ready:
            words = ["Up: earlier messages"]
        else:
            words = [f"{label} is not ready" if label else "no engine"]
        self.border_subtitle = Content(joined(words, self._glyphs.dot))
        empty = self.query_one("#chat-empty", Static)
        empty.display = not self.query(Turn) and not self.answering
        if self._ready:
            empty.update(f"{label} is ready. Type a question and press Enter.")
        elif label:
            empty.update(f"{label} is not ready yet. Its log says how far it is; what you type here stays.")
        else:
            empty.update("No engine to talk to. Start one from the board, then ask it something here.")
