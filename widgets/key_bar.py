"""The line of keys at the lower edge: those that do something now, as many as there is room for."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events

from gpudeck.widgets.lines import LineView

_BETWEEN = 2  # blanks
_WORDS = {"question_mark": "?", "slash": "/", "escape": "Esc", "pageup": "PgUp", "pagedown": "PgDn", "delete": "Del"}
_WORDS |= {"left_square_bracket": "[", "right_square_bracket": "]", "plus": "+", "minus": "-"}


@dataclass(frozen=True, slots=True)
class KeyHint:
    """A key, by Textual's name for it, and what it does."""

    key: str
    does: str

    @property
    def words(self) -> tuple[str, str]:
        return key_words(self.key), self.does[:1].lower() + self.does[1:]

    @property
    def width(self) -> int:
        key, does = self.words
        return cell_len(key) + 1 + cell_len(does)


def key_words(key: str) -> str:
    """A key as it stands on the screen, without a sign that a terminal's font may lack: "Ctrl+J", "Esc", "?"."""
    *held, last = key.split("+")
    word = _WORDS.get(last) or (last if len(last) == 1 and not held else last.capitalize())
    return "+".join([*(name.capitalize() for name in held), word])


class KeyBar(LineView, can_focus=False):
    """Shows hints from the left and `always` at the right; a click presses the key.

    Where there is too little room the last of the hints are left out: the more telling stand first.
    """

    DEFAULT_CSS = """
    KeyBar { height: 1; width: 1fr; dock: bottom; overflow: hidden; scrollbar-size: 0 0; background: $panel; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._hints: tuple[KeyHint, ...] = ()
        self._always: tuple[KeyHint, ...] = ()
        self._places: list[tuple[int, int, str]] = []  # columns from and to, and the key that stands there

    def show(self, hints: Sequence[KeyHint], always: Sequence[KeyHint]) -> None:
        """Show these keys; nothing is drawn where they are the same."""
        if (tuple(hints), tuple(always)) != (self._hints, self._always):
            self._hints, self._always = tuple(hints), tuple(always)
            self._draw()

    def on_resize(self) -> None:
        self._draw()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        for start, end, key in self._places:
            if start <= event.x < end:
                self.app.simulate_key(key)

    def _draw(self) -> None:
        width = self.room.width
        if not width:
            return
        right = width - 1 - sum(hint.width for hint in self._always) - _BETWEEN * max(len(self._always) - 1, 0)
        placed, x = [], 1
        for hint in self._hints:
            if x + hint.width + _BETWEEN > right:
                break
            placed.append((x, hint))
            x += hint.width + _BETWEEN
        x = max(right, 0)
        for hint in self._always:
            placed.append((x, hint))
            x += hint.width + _BETWEEN
        line: list[tuple[str, str]] = []
        at = 0
        for x, hint in placed:
            key, does = hint.words
            line += [(" " * (x - at), ""), (key, "primary strong"), (f" {does}", "muted")]
            at = x + hint.width
        self._places = [(x, x + hint.width, hint.key) for x, hint in placed]
        self.show_lines([tuple(line)])
