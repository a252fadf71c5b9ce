"""All cards on one line, at every width."""

import pytest
from textual.app import App, ComposeResult

from gpudeck.services.box.types import Snapshot
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import width_of
from gpudeck.widgets.strip import CardStrip
from tests.widgets.board_boxes import MIXED, snapshot, uniform


async def shown(size: int, what: Snapshot, stale: float | None = None, glyphs: Glyphs | None = None) -> str:
    class Line(App[None]):
        def compose(self) -> ComposeResult:
            yield CardStrip(glyphs=glyphs)

    async with Line().run_test(size=(size, 3)) as pilot:
        strip = pilot.app.query_one(CardStrip)
        strip.show(what, stale=stale)
        assert width_of(strip.lines[0]) <= size
        return strip.plain


async def test_each_card_has_its_bar_and_figure() -> None:
    assert await shown(40, snapshot(MIXED)) == "0▅61% 1▅61% 2▅61%"


async def test_signs_for_a_fault_a_brake_and_a_figure_that_is_not_known() -> None:
    assert (await shown(40, snapshot(MIXED, fault="gone"))).startswith("0✗ ")
    assert (await shown(40, snapshot(MIXED, throttle_reasons=("thermal",)))).startswith("0▅61%▲ ")
    assert (await shown(40, snapshot(MIXED, utilization_percent=None))).startswith("0n/a ")


async def test_figures_go_first_where_there_is_no_room() -> None:
    line = await shown(80, snapshot(uniform(16)))
    assert line.startswith("0▅ 1▅")
    assert line.endswith("15▅")


async def test_what_still_does_not_fit_is_marked() -> None:
    assert (await shown(20, snapshot(uniform(16)))).endswith("…")


async def test_stale_readings_say_so() -> None:
    assert (await shown(60, snapshot(MIXED), stale=9.0)).startswith("▲ 9 s old")


async def test_ascii() -> None:
    assert (await shown(60, snapshot(MIXED), stale=9.0, glyphs=Glyphs.ascii())).isascii()


async def test_trouble_is_told_and_cut_with_a_mark() -> None:
    class Line(App[None]):
        def compose(self) -> ComposeResult:
            yield CardStrip()

    async with Line().run_test(size=(20, 3)) as pilot:
        strip = pilot.app.query_one(CardStrip)
        strip.show_trouble("The driver does not answer.")
        assert strip.plain.startswith("✗ The driver")
        assert strip.plain.endswith("…")


@pytest.mark.parametrize("percent", [0, 100])
async def test_the_ends_of_the_scale(percent: int) -> None:
    line = await shown(40, snapshot(MIXED, utilization=percent))
    assert line.startswith(f"0{'▁' if percent == 0 else '█'}{percent}%")
