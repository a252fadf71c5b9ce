"""The ring of lines, its rows and its search, held against a plain list that forgets nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from gpudeck.services.engine.types import LogLine
from gpudeck.services.text import printable
from gpudeck.widgets.log_buffer import LogBuffer
from gpudeck.widgets.log_line import Level
from gpudeck.widgets.log_rows import LogRows, rows_of, wrapped
from gpudeck.widgets.log_search import LogSearch

_TEXTS = st.sampled_from(
    [
        "",
        "short",
        "a line that needs more than one row",
        "INFO 12-01 01:17:56 [a.py:1] fine",
        "Traceback (most recent call last):",
        "漢字 wide",
        "tab\there",
        "esc \x1b[31m",
        "WARNING 12-01 01:17:56 [a.py:1] hm",
    ]
)


def _lines(*texts: str) -> list[LogLine]:
    return [LogLine(text) for text in texts]


def test_numbers_stay_while_the_oldest_lines_go() -> None:
    buffer = LogBuffer(max_lines=3)
    buffer.extend(_lines("a", "b"))
    buffer.extend(_lines("c", "d", "e"))
    assert (buffer.first, buffer.end, len(buffer)) == (2, 5, 3)
    assert [buffer.text(number) for number in range(2, 5)] == ["c", "d", "e"]


def test_a_batch_larger_than_the_ring_is_counted_in_full() -> None:
    buffer = LogBuffer(max_lines=2)
    buffer.extend(_lines("a"))
    buffer.extend(_lines("b", "c", "d", "e"))
    assert (buffer.first, buffer.end) == (3, 5)
    assert buffer.text(4) == "e"


def test_memory_is_bounded_whatever_the_length_of_the_lines() -> None:
    buffer = LogBuffer(max_bytes=100_000)
    for _ in range(100):
        buffer.extend(_lines("x" * 5_000))
        assert buffer.size_bytes <= 100_000
    assert buffer.end == 100
    assert 10 <= len(buffer) < 20


def test_errors_are_known_by_their_numbers_and_forgotten_with_their_lines() -> None:
    buffer = LogBuffer(max_lines=3)
    buffer.extend(_lines("AssertionError", "x", "ValueError: y"))
    assert list(buffer.errors) == [0, 2]
    buffer.extend(_lines("z"))
    assert list(buffer.errors) == [2]
    assert buffer.level(2) is Level.ERROR


@given(st.text(max_size=60), st.integers(min_value=2, max_value=12))
def test_the_pieces_of_a_line_are_the_line_and_fit(text: str, width: int) -> None:
    pieces = wrapped(text, width)
    assert "".join(pieces) == printable(text)
    assert all(cell_len(piece) <= width for piece in pieces)
    assert rows_of(text, width) == len(pieces)


@settings(max_examples=150)
@given(
    st.lists(st.lists(_TEXTS, max_size=6), max_size=8),
    st.sampled_from([None, 5, 9]),
    st.booleans(),
)
def test_rows_follow_the_buffer_as_if_laid_out_anew(
    batches: list[list[str]], width: int | None, errors_only: bool
) -> None:
    buffer = LogBuffer(max_lines=7)
    rows = LogRows(buffer)
    keep = (lambda number: buffer.level(number) is Level.ERROR) if errors_only else None
    rows.arrange(keep=keep, width=width)
    for batch in batches:
        before = rows.height
        buffer.extend(_lines(*batch))
        gone = rows.sync()
        assert 0 <= gone <= before
        anew = LogRows(buffer)
        anew.arrange(keep=keep, width=width)
        assert rows.height == anew.height
        assert [rows.locate(row) for row in range(rows.height)] == [anew.locate(row) for row in range(anew.height)]
        for row in range(rows.height):
            found = rows.locate(row)
            assert found is not None
            assert rows.row(found[0]) == row - found[1]


def test_a_search_ignores_case_until_the_query_has_a_capital() -> None:
    buffer = LogBuffer()
    buffer.extend(_lines("Error one", "error two", "three"))
    assert LogSearch(buffer, "error").hits == [0, 1]
    assert LogSearch(buffer, "Error").hits == [0]


def test_a_search_takes_in_new_lines_and_drops_old_ones() -> None:
    buffer = LogBuffer(max_lines=3)
    buffer.extend(_lines("hit", "no"))
    search = LogSearch(buffer, "hit")
    buffer.extend(_lines("hit", "hit"))
    search.sync()
    assert search.hits == [2, 3]
    assert search.step(3, 1) == 2
    assert search.step(2, -1) == 3
    assert search.position(3) == 2


def test_the_places_of_a_hit_are_those_on_screen() -> None:
    search = LogSearch(LogBuffer(), "ab")
    assert search.spans("xabAB") == [(1, 3), (3, 5)]
