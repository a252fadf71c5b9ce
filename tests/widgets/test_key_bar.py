"""The line of keys: what fits stands whole, and a click presses the key."""

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.pilot import Pilot

from gpudeck.widgets.key_bar import KeyBar, KeyHint, key_words

HINTS = (KeyHint("space", "Lift"), KeyHint("m", "Model"), KeyHint("backspace", "To the pool"))
ALWAYS = (KeyHint("question_mark", "Help"), KeyHint("q", "Quit"))


class Keys(App[None]):
    BINDINGS = [Binding("m", "note", "Model")]  # noqa: RUF012 (as App declares it)
    ENABLE_COMMAND_PALETTE = False

    def __init__(self) -> None:
        super().__init__()
        self.bar = KeyBar()
        self.pressed = 0

    def compose(self) -> ComposeResult:
        yield self.bar

    def on_mount(self) -> None:
        self.bar.show(HINTS, ALWAYS)

    def action_note(self) -> None:
        self.pressed += 1


@pytest.mark.parametrize(
    ("key", "words"),
    [("space", "Space"), ("ctrl+j", "Ctrl+J"), ("question_mark", "?"), ("R", "R"), ("escape", "Esc"), ("f1", "F1")],
)
def test_keys_in_words_that_every_font_has(key: str, words: str) -> None:
    assert key_words(key) == words


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, " Space lift  m model  Backspace to the pool    ? help  q quit"),
        (40, " Space lift  m model      ? help  q quit"),
        (28, " Space lift  ? help  q quit"),
        (14, "? help  q quit"),
    ],
)
async def test_what_does_not_fit_is_left_out_whole(width: int, shown: str) -> None:
    app = Keys()
    async with app.run_test(size=(width, 3)):
        words = app.bar.plain.split()
        assert words == shown.split()
        assert len(app.bar.plain) <= width


async def test_a_click_presses_the_key() -> None:
    app = Keys()
    async with app.run_test(size=(60, 3)) as pilot:
        await click(pilot, app.bar.plain.index("model"))
        await click(pilot, 45)  # between the keys
        assert app.pressed == 1


async def click(pilot: Pilot[None], column: int) -> None:
    await pilot.click(KeyBar, offset=(column, 0))
    await pilot.pause()
