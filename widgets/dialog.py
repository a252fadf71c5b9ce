"""What all dialogs share: the frame, and a line of keys that the mouse can press too."""

from typing import TypeVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from gpudeck.widgets.glyphs import Glyphs

Result = TypeVar("Result")


class KeyButton(Static):
    """A key and what it does; a click does the same."""

    DEFAULT_CSS = """
    KeyButton {
        width: auto; height: 1; margin: 0 3 0 0; color: $text-muted;
        &:hover { background: $primary 25%; color: $foreground; }
    }
    """

    def __init__(self, key: str, does: str, action: str) -> None:
        super().__init__(Content.assemble((key, "bold $primary"), f" {does}"))
        self._action = action

    async def on_click(self, event: events.Click) -> None:
        event.stop()
        await self.screen.run_action(self._action)


class KeyLine(Horizontal):
    """The keys of a dialog, at its lower edge."""

    DEFAULT_CSS = """
    KeyLine { height: 1; dock: bottom; }
    """

    def __init__(self, *keys: tuple[str, str, str]) -> None:
        """Each key is what is pressed, what it does, and the screen's action for it."""
        super().__init__(*(KeyButton(*key) for key in keys))


class Dialog(ModalScreen[Result]):
    """A frame over the panel.  A subclass composes into it by `compose_body` and names its `keys`."""

    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        & > #dialog {
            width: 92%; max-width: 110; height: auto; max-height: 92%;
            border: round $primary; border-title-color: $primary; border-title-style: bold;
            background: $surface; padding: 1 2 0 2;
        }
        &.-ascii > #dialog { border: ascii $primary; }
        & .muted { color: $text-muted; }
        & .gap { margin: 0 0 1 0; }
        & Static { height: auto; }
        & VerticalScroll {
            height: auto; max-height: 1fr; margin: 0 0 1 0; scrollbar-size-vertical: 1;
            scrollbar-background: $surface; background: $surface;
        }
    }
    """

    def __init__(self, title: str, glyphs: Glyphs | None = None) -> None:
        """`title` may hold foreign text that is printable."""
        super().__init__()
        self._title = title
        self.glyphs = glyphs or Glyphs.unicode()
        self.set_class(self.glyphs is Glyphs.ascii(), "-ascii")

    def compose(self) -> ComposeResult:
        frame = Vertical(id="dialog")
        frame.border_title = Content(self._title)
        with frame:
            yield from self.compose_body()
            yield KeyLine(*self.keys())

    def compose_body(self) -> ComposeResult:
        """The widgets above the line of keys."""
        raise NotImplementedError

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        """The line of keys: what is pressed, what it does, the action."""
        raise NotImplementedError
