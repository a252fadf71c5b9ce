"""How the engine is asked: whom, as whom, how freely, how long."""

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static, TextArea

from gpudeck.services.errors import OperatorError
from gpudeck.services.http.conversation import ChatSettings
from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs

_STOP_WORDS = ", "
# Attribute, label, help.
_FIELDS = (
    ("temperature", "temperature", "0: always the likeliest word; empty: the server's own"),
    ("max_tokens", "max tokens", "the longest answer; empty: as much as the context holds"),
    ("stop", "stop", "texts that end the answer, with a comma and a blank between them"),
    ("url", "server", "http://host:port of one elsewhere; empty: the selected engine"),
    ("key_file", "key file", "holds its API key; empty: VLLM_API_KEY of the environment"),
)


class ChatForm(Dialog[ChatSettings | None]):
    """Gives back the settings, or None where the operator leaves them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "take", "take over", id="chat-form.take"),
        Binding("escape", "leave", "leave", id="chat-form.leave"),
    ]
    DEFAULT_CSS = """
    ChatForm {
        & > #dialog { width: 96%; max-width: 96; }
        & TextArea { height: 4; border: none; padding: 0 1; background: $panel; }
        & TextArea:focus { border: none; background: $primary 20%; }
        & Input { background: $panel; }
        & Input:focus { background: $primary 20%; }
        & #chat-form-wrong { color: $error; }
    }
    """

    def __init__(self, settings: ChatSettings, address: Callable[[str], str], glyphs: Glyphs | None = None) -> None:
        """`address` gives back a server's address as it is used, and raises OperatorError for what is none."""
        super().__init__("How the engine is asked", glyphs)
        self._settings = settings
        self._address = address

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield Static("system prompt")
            yield TextArea(self._settings.system, tab_behavior="focus", highlight_cursor_line=False)
            for attribute, label, help_text in _FIELDS:
                yield Static(Content.assemble(label, (f"  {help_text}", "$foreground 65%")))
                yield Input(
                    _text(getattr(self._settings, attribute)), id=attribute, compact=True, select_on_focus=False
                )
        yield Static(id="chat-form-wrong", markup=False)

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        return (
            ("Ctrl+S", "take over", "take"),
            ("Esc", "leave as it was", "leave"),
            ("Tab", "next field", "app.focus_next"),
        )

    def on_mount(self) -> None:
        self.query_one(TextArea).focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_take()

    def action_take(self) -> None:
        try:
            texts = {field.id or "": field.value for field in self.query(Input)}
            settings = read_settings(self.query_one(TextArea).text, texts, self._address)
        except OperatorError as error:
            self.query_one("#chat-form-wrong", Static).update(f"{self.glyphs.blocked} {printable(str(error))}")
            return
        self.dismiss(settings)

    def action_leave(self) -> None:
        self.dismiss(None)


def read_settings(system: str, texts: dict[str, str], address: Callable[[str], str]) -> ChatSettings:
    """The settings that stand in the fields.  Raises OperatorError with the sentence that is shown."""
    url = texts["url"].strip()
    return ChatSettings(
        url=address(url) if url else "",
        key_file=texts["key_file"].strip(),
        system=system.strip(),
        temperature=_temperature(texts["temperature"].strip()),
        max_tokens=_whole(texts["max_tokens"].strip()),
        stop=tuple(word for word in texts["stop"].split(_STOP_WORDS) if word),
    )


def _temperature(text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 2.0:
        raise OperatorError("temperature takes a number from 0 to 2, like 0.7.")
    return value


def _whole(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:10]) < 10**9):
        raise OperatorError("max tokens takes a whole number from 1 on, like 256.")
    return int(text)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return _STOP_WORDS.join(value)
    return "" if value is None else str(value)
