"""What is sent in a frame's place has the frame's effect, held against a terminal emulator that gets both."""

from collections.abc import Callable

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudeck.app.repaint import Repaint

COLUMNS, ROWS = 24, 5
SYNC = ("\x1b[?2026h", "\x1b[?2026l")

STYLES = st.sampled_from(
    [
        "",
        "38;5;188;48;5;16",
        "38;5;116;48;5;16",
        "38;5;116;48;5;236",
        "1;38;5;188;48;5;16",
        "1;4;31",
        "7;32;44",
        "97;101",
        "38;2;1;2;3",
    ]
)
WORDS = st.sampled_from(
    ["", " ", "    ", "a", "ab  cd", "87 %", "▌██▍  ", "▁▂▃▄▅", "Ω", "日本", "e\u0301x", "🙂", "gpudeck 8 GPUs"]
)


@st.composite
def frames(draw: Callable[[st.SearchStrategy[object]], object]) -> str:
    """A frame as Textual's compositor writes it: rows of pieces, each in a style of its own, and the cursor's place."""
    parts = []
    for row in draw(st.lists(st.integers(0, ROWS - 1), unique=True, max_size=ROWS)):  # type: ignore[attr-defined]
        column = draw(st.integers(0, COLUMNS - 16))
        parts.append(f"\x1b[{row + 1};{column + 1}H")  # type: ignore[operator]
        room = COLUMNS - column  # type: ignore[operator]
        for _ in range(draw(st.integers(0, 3))):  # type: ignore[call-overload]
            style, word = draw(STYLES), str(draw(WORDS))
            taken = sum(2 if char in "日本🙂" else 0 if char == "\u0301" else 1 for char in word)
            if taken <= room:
                room -= taken
                parts.append(f"\x1b[{style}m{word}\x1b[0m" if style else word)
    parts.append(f"\x1b[{draw(st.integers(1, ROWS))};{draw(st.integers(1, COLUMNS))}H")
    return "".join(parts)


class Emulator:
    def __init__(self) -> None:
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self.screen)

    def feed(self, data: str) -> None:
        self._stream.feed(data)

    def seen(self) -> list[list[tuple[object, ...]]]:
        """What a person sees; a blank shows no foreground unless it is underlined or reversed."""
        return [[_seen(self.screen.buffer[row][column]) for column in range(COLUMNS)] for row in range(ROWS)]

    @property
    def cursor(self) -> tuple[int, int]:
        return self.screen.cursor.y, self.screen.cursor.x


def _seen(cell: pyte.screens.Char) -> tuple[object, ...]:
    if cell.data == " " and not (cell.underscore or cell.reverse or cell.strikethrough):
        return (" ", cell.bg)
    return tuple(cell)


@given(st.lists(frames(), min_size=1, max_size=6))
@settings(max_examples=300, deadline=None)
def test_both_ways_lead_to_the_same_screen(drawn: list[str]) -> None:
    plain, lean, repaint = Emulator(), Emulator(), Repaint()
    for frame in drawn:
        plain.feed(frame)
        lean.feed(repaint.through(frame))
        assert lean.seen() == plain.seen()
        assert lean.cursor == plain.cursor


@given(
    st.lists(frames(), min_size=1, max_size=4),
    st.sampled_from(["\x1b[2J", "\x1b[?1049h", "\x1b[0m\x1b[Ktext", "\x1b[2Sx"]),
)
@settings(max_examples=100, deadline=None)
def test_after_what_is_no_frame_every_cell_is_drawn_anew(drawn: list[str], between: str) -> None:
    plain, lean, repaint = Emulator(), Emulator(), Repaint()
    for frame in [*drawn, between, *drawn]:
        plain.feed(frame)
        lean.feed(repaint.through(frame))
    assert lean.seen() == plain.seen()


FRAME = "\x1b[1;1H\x1b[1;38;5;188;48;5;16mgpudeck\x1b[0m\x1b[38;5;246;48;5;16m  14:02:11\x1b[0m\x1b[1;1H"


def test_a_frame_that_changes_nothing_costs_nothing_and_no_synchronised_update() -> None:
    repaint = Repaint()
    assert repaint.through(FRAME)
    assert [repaint.through(part) for part in (SYNC[0], FRAME, SYNC[1])] == ["", "", ""]


def test_what_changed_is_sent_alone_within_its_synchronised_update() -> None:
    repaint = Repaint()
    repaint.through(FRAME)
    told = "".join(repaint.through(part) for part in (SYNC[0], FRAME.replace("11\x1b", "12\x1b"), SYNC[1]))
    assert told == f"{SYNC[0]}\x1b[16C2\x1b[1;1H{SYNC[1]}"


def test_forgetting_draws_it_all_again() -> None:
    repaint = Repaint()
    repaint.through(FRAME)
    repaint.forget()
    again = repaint.through(FRAME)
    assert "gpudeck" in again
    assert "14:02:11" in again


@pytest.mark.parametrize(
    "harmless", ["\x1b[?1003h\x1b[?1006h", "\x1b[?25l", "\x1b[?2026$p", "\x07", "\x1b]52;c;YQ==\x07"]
)
def test_modes_titles_and_bells_pass_and_leave_what_is_known(harmless: str) -> None:
    repaint = Repaint()
    repaint.through(FRAME)
    assert repaint.through(harmless) == harmless
    assert repaint.through(FRAME) == ""


def test_foreign_bytes_in_a_text_are_no_frame() -> None:
    """Text is made printable before it is shown; what still has a control character goes as Textual wrote it."""
    odd = "\x1b[1;1Ha\tb"
    assert Repaint().through(odd) == odd


def test_what_terminals_do_not_agree_on_is_always_written_again() -> None:
    repaint = Repaint()
    wide = "\x1b[2;1H日本\x1b[1;1H"
    repaint.through(wide)
    assert "日本" in repaint.through(wide)
