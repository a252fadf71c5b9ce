"""The failure card: what it says, in any width, and its key."""

import pytest
from rich.cells import cell_len

from gpudeck.widgets.failure_card import FailureView, failure_rows
from gpudeck.widgets.glyphs import Glyphs

VIEW = FailureView(
    "Only 21.5 of 39.5 GiB are free on card 2 (NVIDIA A100-SXM4-40GB): held by ollama (pid 12, 18.0 GiB).",
    "Free the card, or take what is free now: --gpu-memory-utilization 0.53.",
    mendable=True,
)


def text(view: FailureView, width: int) -> list[str]:
    return ["".join(part for part, _ in row) for row in failure_rows(view, Glyphs.unicode(), width, 3)]


def test_meaning_fix_and_key() -> None:
    assert text(VIEW, 200) == [
        f"     {VIEW.meaning}",
        f"   {Glyphs.unicode().arrow} {VIEW.fix}  f",
    ]


@pytest.mark.parametrize("width", [24, 44, 78, 200])
def test_no_row_is_wider_than_its_room(width: int) -> None:
    rows = text(VIEW, width)
    assert all(cell_len(row) <= width for row in rows)
    assert " ".join(" ".join(rows).split()).count("0.53.") == 1


def test_no_key_where_nothing_can_be_applied() -> None:
    assert text(FailureView("It broke.", "Look."), 80)[-1].endswith("Look.")
    assert text(FailureView("It broke."), 80) == ["     It broke."]


def test_foreign_text_is_written_out() -> None:
    assert "\x1b" not in "".join(text(FailureView("\x1b[31m[red]x[/]"), 80))
    assert "[red]x[/]" in "".join(text(FailureView("\x1b[31m[red]x[/]"), 80))
