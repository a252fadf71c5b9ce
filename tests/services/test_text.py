"""Foreign text shown as text."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.text import printable


def test_escape_sequences_are_written_out() -> None:
    assert printable("\x1b[31mred\x1b]0;title\x07") == "^[[31mred^[]0;title^G"


def test_carriage_return_newline_and_delete_are_written_out() -> None:
    assert printable("a\rb\nc\x7f") == "a^Mb^Jc^?"


def test_c1_controls_and_direction_overrides_are_named() -> None:
    assert printable("\x9b31m \u202eevil") == "<U+009B>31m <U+202E>evil"


def test_plain_text_of_any_script_stays() -> None:
    assert printable("Größe 模型 ▄▄ ok") == "Größe 模型 ▄▄ ok"


def test_bytes_that_were_no_text_are_marked() -> None:
    assert printable(b"a\xffb".decode("utf-8", "surrogateescape")) == "a\ufffdb"


@given(st.text(st.characters(codec=None)))
def test_nothing_that_moves_a_cursor_is_left(text: str) -> None:
    shown = printable(text)
    assert not [character for character in shown if unicodedata.category(character) in ("Cc", "Cs")]
