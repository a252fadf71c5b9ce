"""Text fitted to cells: never wider than asked, never cut without a mark."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gpudeck.services.box.types import GIB
from gpudeck.services.plan.findings import Severity, VerdictState
from gpudeck.widgets.glyphs import Glyphs, card_name, gib, tokens_in_short, wrap

SETS = pytest.mark.parametrize("glyphs", [Glyphs.unicode(), Glyphs.ascii()], ids=["unicode", "ascii"])
FOREIGN = st.text(st.sampled_from("ab c/日本語é́ü…"), max_size=40)


@given(FOREIGN, st.integers(0, 30))
def test_what_is_cut_or_shortened_fits_and_bears_the_mark(text: str, width: int) -> None:
    glyphs = Glyphs.unicode()
    for shorter in (glyphs.cut(text, width), glyphs.shorten(text, width)):
        assert cell_len(shorter) <= width
        if cell_len(text) > width > 0:
            assert glyphs.ellipsis in shorter
        elif cell_len(text) <= width:
            assert shorter == text


@given(FOREIGN, st.integers(0, 30))
def test_fit_is_exactly_as_wide_as_asked(text: str, width: int) -> None:
    assert cell_len(Glyphs.unicode().fit(text, width)) == width


@given(FOREIGN, st.integers(2, 30))
def test_wrapping_loses_nothing_but_blanks(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_wrapping_a_wide_character_into_one_column_ends() -> None:
    assert wrap("日本", 1) == ["日", "本"]


def test_a_path_keeps_both_ends() -> None:
    path = "/srv/models/very/long/way/to/gemma-3-12b-it"
    short = Glyphs.unicode().shorten(path, 24)
    assert short.startswith("/srv")
    assert short.endswith("gemma-3-12b-it")


@SETS
def test_every_drawing_character_is_one_cell(glyphs: Glyphs) -> None:
    for field in fields(Glyphs):
        value = getattr(glyphs, field.name)
        if field.name not in ("arrow", "swap", "degree"):
            assert all(cell_len(character) == 1 for character in value), field.name


def test_the_ascii_set_is_ascii() -> None:
    glyphs = Glyphs.ascii()
    assert all("".join(getattr(glyphs, field.name)).isascii() for field in fields(Glyphs))


@SETS
def test_states_have_signs_of_their_own(glyphs: Glyphs) -> None:
    assert len({glyphs.state(state) for state in VerdictState}) == 3
    assert len({glyphs.severity(severity) for severity in Severity}) == 3
    assert len({glyphs.running, glyphs.starting, glyphs.stopped, glyphs.failed}) == 4
    parts = (glyphs.weights, glyphs.kv_cache, glyphs.overhead, glyphs.other, glyphs.free)
    assert len(set(parts)) == 5


@SETS
@pytest.mark.parametrize("fraction", [-1.0, 0.0, 0.01, 0.5, 0.999, 1.0, 7.0])
def test_a_bar_stays_in_its_width(glyphs: Glyphs, fraction: float) -> None:
    assert sum(map(len, glyphs.bar(fraction, 12))) == 12
    assert glyphs.bar(fraction, 0) == ("", "")


def test_a_bar_has_halves_and_a_little_is_not_nothing() -> None:
    glyphs = Glyphs.unicode()
    assert glyphs.bar(0.5, 4) == ("━━", "──")
    assert glyphs.bar(0.4, 4) == ("━╾", "──")
    assert glyphs.bar(0.001, 4) == ("╾", "───")
    assert glyphs.bar(None, 4) == ("", "────")
    assert glyphs.bar(1, 4) == ("━━━━", "")


def test_a_sparkline_shows_the_latest_and_leaves_gaps() -> None:
    assert Glyphs.unicode().sparkline([1.0, 0.0, None, 1.0], 3) == "▁ █"
    assert Glyphs.unicode().sparkline([0.5], 3).strip() in "▄▅"
    assert Glyphs.unicode().sparkline([0.5], 0) == ""


@pytest.mark.parametrize(
    ("tokens", "short"),
    [
        (0, "0"),
        (812, "812"),
        (62_400, "62k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (9_950_000, "10M"),
        (10**9, "1000M"),
    ],
)
def test_tokens_in_short(tokens: int, short: str) -> None:
    assert tokens_in_short(tokens) == short


def test_figures_that_are_not_known_say_so() -> None:
    assert gib(None) == "n/a"
    assert gib(int(23.94 * GIB)) == "23.9"


def test_card_names() -> None:
    assert card_name("NVIDIA GeForce RTX 4090 D") == "RTX 4090 D"
    assert card_name("NVIDIA A100-SXM4-40GB") == "A100-SXM4-40GB"
    assert card_name("Tesla V100-SXM2-16GB") == "V100-SXM2-16GB"
