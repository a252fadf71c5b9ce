"""Nothing but ASCII, in the same cells."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from gpudeck.widgets.ascii_only import AsciiOnly, in_ascii


@given(st.text(st.characters(min_codepoint=32, exclude_categories=("Cc", "Cs", "Mn", "Me")), max_size=30))
def test_the_text_is_ascii_and_as_wide(text: str) -> None:
    assert in_ascii(text).isascii()
    assert cell_len(in_ascii(text)) == sum(map(cell_len, text))


def test_what_has_a_likeness_keeps_it() -> None:
    assert in_ascii("TP2×PP1 · 4…") == "TP2xPP1 - 4~"
    assert in_ascii("│██░│") == "|##.|"
    assert in_ascii("Grüße, 推論") == "Gru?e, ????"


def test_styles_stay() -> None:
    bold = Style(bold=True)
    shown = AsciiOnly().apply([Segment("plain"), Segment("é", bold)], Color.parse("black"))
    assert shown == [Segment("plain"), Segment("e", bold)]
