"""The board under the mouse: press, move, release, and every other way that a drag ends."""

import pytest
from textual import events
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.screen import ModalScreen

from gpudeck.services.plan.dragging import Rank
from gpudeck.services.plan.types import Placement
from gpudeck.widgets.board.ghost import DragGhost
from gpudeck.widgets.board.views import StagesView
from tests.widgets.board_boxes import uniform
from tests.widgets.board_table import SIZES, Table


async def drag(pilot: Pilot[None], start: tuple[int, int], *way: tuple[int, int], drop: bool = True) -> None:
    """Press, move through each point, and let the button go at the last."""
    await pilot.mouse_down(offset=start)
    await pilot.hover(offset=(start[0] + 1, start[1]))
    for point in way:
        await pilot.hover(offset=point)
    # A move within the pause after a frame is drawn when the pause is over.
    await pilot.pause(0.05)
    if drop:
        await pilot.mouse_up(offset=way[-1])
        await pilot.pause()


@SIZES
async def test_two_cards_into_one_group_by_mouse(size: tuple[int, int]) -> None:
    app = Table()
    async with app.run_test(size=size) as pilot:
        await drag(pilot, app.pool_point(3), app.stage_point(8, 5))
        assert app.changes == [Placement(((1,),))]
        await drag(pilot, app.pool_point(3), app.stage_point(20, 2), app.stage_point(8, 10), drop=False)
        assert app.board.drag is not None
        assert app.board.drag.target == Rank(0, 1)
        ghost = app.query_one(DragGhost)
        assert ghost.display
        assert ghost.region.offset == Offset(*app.stage_point(8, 10)) + Offset(2, 1)
        assert "2 A100-SXM4-40GB" in ghost.plain
        assert "● ready · 22k tokens" in ghost.plain
        await pilot.mouse_up(offset=app.stage_point(8, 10))
        await pilot.pause()
        assert app.changes[-1] == Placement(((1, 2),))
        assert not ghost.display
        assert app.mouse_captured is None


async def test_a_click_only_chooses() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.click(offset=app.pool_point(4))
        assert app.board.chosen == 2
        assert app.board.drag is None
        assert app.mouse_captured is None


async def test_escape_ends_a_drag_and_its_release_drops_nothing() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        await drag(pilot, app.pool_point(3), app.stage_point(8, 5), drop=False)
        await pilot.press("escape")
        assert app.board.drag is None
        assert app.mouse_captured is None
        await pilot.mouse_up(offset=app.stage_point(8, 5))
        assert app.changes == []


async def test_the_right_button_ends_a_drag() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        await drag(pilot, app.pool_point(3), app.stage_point(8, 5), drop=False)
        await pilot.mouse_down(offset=app.stage_point(8, 5), button=3)
        await pilot.pause()
        assert app.board.drag is None
        await pilot.mouse_up(offset=app.stage_point(8, 5))
        assert app.changes == []


async def test_a_dialog_that_opens_ends_a_drag() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        await drag(pilot, app.pool_point(3), app.stage_point(8, 5), drop=False)
        await app.push_screen(ModalScreen())
        await pilot.pause()
        assert app.board.drag is None
        await app.pop_screen()
        await drag(pilot, app.pool_point(3), app.stage_point(8, 5))
        assert app.changes == [Placement(((1,),))]


async def test_out_of_the_board_and_back_into_the_pool() -> None:
    app = Table(placement=Placement(((1, 2),)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        row = next(row for row, line in enumerate(app.stages().splitlines()) if "2 A100" in line)
        await drag(pilot, app.stage_point(8, row), app.pool_point(9))
        assert app.changes == [Placement(((1,),))]
        assert app.board.chosen == 2


async def test_a_drop_outside_changes_nothing() -> None:
    app = Table(placement=Placement(((1, 2),)))
    async with app.run_test(size=(100, 30)) as pilot:
        await drag(pilot, app.pool_point(2), app.stage_point(8, 5), (50, 29))
        assert app.changes == []
        assert app.board.drag is None


async def test_a_terminal_that_reports_no_motion_can_still_drag() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.mouse_down(offset=app.pool_point(3))
        await pilot._post_mouse_events([events.MouseUp], offset=app.stage_point(8, 5), button=1)
        await pilot.pause()
        assert app.changes == [Placement(((1,),))]


async def test_a_card_lifted_by_a_key_is_dropped_by_a_click() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("space")
        await pilot.click(offset=app.stage_point(8, 5))
        assert app.changes == [Placement(((0,),))]


async def test_moves_within_a_cell_draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        await drag(pilot, app.pool_point(3), app.stage_point(8, 5), drop=False)
        drawn = 0

        def counted() -> None:
            nonlocal drawn
            drawn += 1

        monkeypatch.setattr(app.board._frames, "soon", counted)
        for _ in range(5):
            await pilot.hover(offset=app.stage_point(8, 5))
        assert drawn == 0
        await pilot.hover(offset=app.stage_point(9, 5))
        assert drawn == 1


async def test_a_drag_at_the_edge_scrolls() -> None:
    placement = Placement((tuple(range(1, 9)), tuple(range(9, 16))))
    app = Table(uniform(16), placement)
    async with app.run_test(size=(80, 16)) as pilot:
        stages = app.query_one(StagesView)
        await pilot.pause()
        assert stages.max_scroll_y > 0
        await drag(pilot, app.pool_point(2), app.stage_point(40, 6), drop=False)
        await pilot.hover(offset=app.stage_point(40, stages.size.height - 1))
        for _ in range(100):
            if stages.scroll_offset.y == stages.max_scroll_y:
                break
            await pilot.pause(0.05)
        assert stages.scroll_offset.y == stages.max_scroll_y
        await pilot.mouse_up(offset=app.stage_point(40, stages.size.height - 1))
        await pilot.pause()
        assert app.board.placement.stages[1] == (*range(9, 16), 0)


async def test_the_wheel_scrolls_under_a_dragged_card() -> None:
    app = Table(uniform(16), Placement((tuple(range(1, 9)), tuple(range(9, 16)))))
    async with app.run_test(size=(80, 16)) as pilot:
        stages = app.query_one(StagesView)
        await pilot.pause()
        await drag(pilot, app.pool_point(2), app.stage_point(40, 6), drop=False)
        await pilot._post_mouse_events([events.MouseScrollDown], offset=app.stage_point(40, 6), button=0)
        await pilot.pause(0.05)
        assert stages.scroll_offset.y == 3
        assert app.board.drag is not None
        await pilot.press("escape")


async def test_grab_takes_over_a_drag_from_elsewhere() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        app.board.grab(2, Offset(*app.stage_point(8, 5)))
        await pilot.pause()
        assert "2 A100" in app.query_one(DragGhost).plain
        await pilot.mouse_up(offset=app.stage_point(8, 5))
        assert app.changes == [Placement(((2,),))]
