"""Where a message to the engine is typed."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from gpudeck.widgets.messages import ChatCancelled, ChatSubmitted, ChatUnready

_HISTORY = 200


class ChatInput(TextArea):
    """Several lines: Enter sends, Ctrl+J begins a new line (terminals can not tell Shift+Enter from Enter).

    Up on the first line and Down on the last go through what was sent before.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "send", id="chat.send"),
        Binding("ctrl+j", "new_line", "new line", id="chat.newline"),
        Binding("escape", "cancel", "cancel the answer", id="chat.cancel"),
    ]
    DEFAULT_CSS = """
    ChatInput {
        height: auto; max-height: 8; border: none; padding: 0 1; background: $panel;
        scrollbar-size-vertical: 1;
        &:focus { border: none; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, highlight_cursor_line=False)
        self.busy = False  # an answer is coming
        self.ready = False  # there is an engine to send to
        self.back = 0  # so many of the last questions this one takes the place of
        self._sent: list[str] = []
        self._at = 0  # which of `_sent` is shown; past the end: the draft
        self._draft = ""

    async def _on_key(self, event: events.Key) -> None:
        # Acted on here, in turn with the letters.  A priority binding would overtake letters that came in the same
        # packet (a paste, a slow line) and send half of them; TextArea itself would make Enter a line end.
        if event.key in ("enter", "ctrl+j"):
            event.stop()
            event.prevent_default()
            if event.key == "enter":
                self.action_send()
            else:
                self.action_new_line()
            return
        await super()._on_key(event)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # Escape goes on to the screen unless there is an answer to cancel.
        if action == "cancel":
            return self.busy or self.back > 0
        return super().check_action(action, parameters)

    def action_send(self) -> None:
        text = self.text.strip()
        if not self.ready:
            self.post_message(ChatUnready())
            return
        if not text or self.busy:
            return
        if not self._sent or self._sent[-1] != text:
            self._sent.append(text)
            del self._sent[:-_HISTORY]
        self._at = len(self._sent)
        self._draft = ""
        self.clear()
        back, self.back = self.back, 0
        self.post_message(ChatSubmitted(text, back))

    def action_new_line(self) -> None:
        self.insert("\n")

    def put_back(self, question: str, back: int) -> None:
        """Put an earlier question into the field, to be asked in the place of the last `back` ones."""
        self.back = back
        self.text = question
        self.move_cursor(self.document.end)
        self.focus()
        self.refresh_bindings()

    def action_cancel(self) -> None:
        if self.back and not self.busy:
            self.back = 0
            self.clear()
            self.refresh_bindings()
        self.post_message(ChatCancelled())

    def action_cursor_up(self, select: bool = False) -> None:
        if select or self.cursor_location[0] > 0 or not self._recall(self._at - 1):
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        last = self.document.line_count - 1
        if select or self.cursor_location[0] < last or not self._recall(self._at + 1):
            super().action_cursor_down(select)

    def _recall(self, at: int) -> bool:
        """Show an earlier message, or past the last of them the draft; False where there is none."""
        if not 0 <= at <= len(self._sent):
            return False
        if self._at == len(self._sent):
            self._draft = self.text
        self._at = at
        self.text = self._sent[at] if at < len(self._sent) else self._draft
        self.move_cursor(self.document.end)
        return True
