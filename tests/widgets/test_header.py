"""The header at every width."""

from dataclasses import replace

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult

from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.header import DeckHeader, HeaderFacts, header_parts

_FACTS = HeaderFacts("box-01", 4, "580.95.05", "13.0", "systemd (system)", "1 Hz", "14:02:11")


def test_a_wide_header_says_everything() -> None:
    left, right = header_parts(_FACTS, Glyphs.unicode(), 120)
    assert left == "box-01 · 4 GPUs · driver 580.95.05 · CUDA 13.0 · systemd (system)"
    assert right == "1 Hz  14:02:11"


@pytest.mark.parametrize("width", range(1, 130))
def test_no_width_is_too_narrow_and_facts_go_whole(width: int) -> None:
    left, right = header_parts(_FACTS, Glyphs.unicode(), width)
    assert cell_len(left) + cell_len(right) <= max(width - len("gpudeck") - 3, 0)
    if width >= 30:
        assert left.startswith("box-01")
        assert "…" not in left


def test_at_80_columns_box_cards_runner_and_clock_stand() -> None:
    left, right = header_parts(_FACTS, Glyphs.unicode(), 78)
    assert left == "box-01 · 4 GPUs · systemd (system)"
    assert right == "1 Hz  14:02:11"


async def test_foreign_names_are_not_read_as_markup() -> None:
    class _Harness(App[None]):
        def compose(self) -> ComposeResult:
            yield DeckHeader()

    app = _Harness()
    async with app.run_test(size=(80, 24)) as pilot:
        header = app.query_one(DeckHeader)
        header.show(HeaderFacts("[red]b[/]\x1b[2J", 1))
        await pilot.pause()
        row = "".join(segment.text for segment in app.screen._compositor.render_strips()[0])
        assert "gpudeck   [red]b[/]^[[2J · 1 GPU" in row


def test_the_runners_reason_goes_before_the_runner() -> None:
    facts = replace(_FACTS, runner="embedded: This machine was not booted with systemd.")
    left, _ = header_parts(facts, Glyphs.unicode(), 140)
    assert left.endswith("embedded: This machine was not booted with systemd.")
    left, right = header_parts(facts, Glyphs.unicode(), 78)
    assert left == "box-01 · 4 GPUs · embedded"
    assert right == "1 Hz  14:02:11"
