"""The board under a person's hands: the same drag by keys and by mouse, and every way that a drag ends."""

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.screen import ModalScreen

from gpudeck.services.box.types import Box
from gpudeck.services.plan.dragging import OnCard, Pool, Rank
from gpudeck.services.plan.types import Placement
from gpudeck.widgets.board.board import Board
from gpudeck.widgets.board.ghost import DragGhost
from gpudeck.widgets.board.views import PoolView, StagesView, StatusView
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import BACKGROUNDS, FOREGROUNDS
from gpudeck.widgets.messages import PlacementChanged, PlacementPreviewed
from tests.widgets.board_boxes import MIXED, judge, uniform

SIZES = pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["80x24", "200x50"])


class Table(App[None]):
    """A board alone on the screen, as the app would set it up."""

    def __init__(self, box: Box = MIXED, placement: Placement | None = None, glyphs: Glyphs | None = None) -> None:
        super().__init__()
        self.box, self.start, self.board = box, placement, Board(glyphs=glyphs)
        self.changes: list[Placement] = []
        self.previews: list[Placement | None] = []

    def compose(self) -> ComposeResult:
        yield self.board

    def on_mount(self) -> None:
        self.board.show_box(self.box)
        self.board.judge = judge
        if self.start is not None:
            self.board.show_placement(self.start, undoable=False)
        self.board.focus()

    def on_placement_changed(self, message: PlacementChanged) -> None:
        self.changes.append(message.placement)

    def on_placement_previewed(self, message: PlacementPreviewed) -> None:
        self.previews.append(message.placement)

    def stages(self) -> str:
        return self.query_one(StagesView).plain

    def status(self) -> str:
        return self.query_one(StatusView).plain

    def pool_point(self, row: int) -> tuple[int, int]:
        """The point of the screen where the pool's row is; cards begin in row 2."""
        x, y = self.query_one(PoolView).region.offset
        return x + 6, y + row

    def stage_point(self, x: int, y: int) -> tuple[int, int]:
        origin = self.query_one(StagesView).region.offset
        return origin.x + x, origin.y + y


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


# Keys.


@SIZES
async def test_two_cards_into_one_group_by_keys_alone(size: tuple[int, int]) -> None:
    app = Table()
    async with app.run_test(size=size) as pilot:
        await pilot.press("down", "space", "right", "space")  # card 1 becomes stage 0
        assert app.board.placement.stages == ((1,),)
        await pilot.press("left", "down", "space", "l", "l", "enter")  # card 2 joins it
        assert app.changes == [Placement(((1,),)), Placement(((1, 2),))]
        assert "● ready · KV cache 22,000 tokens · 3.0 × 8,192" in app.status()
        assert "NV12" in app.stages()


async def test_escape_puts_the_card_back_and_tells_nobody_of_a_change() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("space", "right")
        assert "0 → a new stage 0" in app.status()
        await pilot.press("escape")
        assert app.board.drag is None
        assert app.board.placement == Placement()
        assert app.changes == []
        assert app.previews == [Placement(((0,),)), None]


async def test_undo_and_redo() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("space", "right", "space", "u")
        assert app.board.placement == Placement()
        await pilot.press("u", "ctrl+r")
        assert app.board.placement == Placement(((0,),))
        assert app.changes == [Placement(((0,),)), Placement(), Placement(((0,),))]


async def test_swap_and_back_to_the_pool_by_keys() -> None:
    app = Table(placement=Placement(((1,), (2,))))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("space", "right", "right", "up")
        assert app.board.drag is not None
        assert app.board.drag.target == OnCard(1)
        await pilot.press("space")
        assert app.board.placement.stages == ((0,), (2,))
        await pilot.press("backspace")
        assert app.board.placement.stages == ((2,),)
        await pilot.press("space", "delete")
        assert app.board.placement.stages == ((2,),)


async def test_copies() -> None:
    app = Table(placement=Placement(((1,), (2,))))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("r")
        assert app.board.placement == Placement(((1,), (2,)), 2)
        assert "copy 1" in app.stages()


async def test_keys_that_do_nothing_now_are_not_offered() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        assert app.board.check_action("lift", ())
        assert not app.board.check_action("drop", ())
        assert not app.board.check_action("undo", ())
        await pilot.press("space")
        assert not app.board.check_action("lift", ())
        assert app.board.check_action("cancel", ())


async def test_keys_can_be_remapped() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        app.set_keymap({"board.lift": "x", "board.right": "d"})
        await pilot.press("x", "d", "enter")
        assert app.board.placement.stages == ((0,),)


async def test_an_empty_box_takes_every_key() -> None:
    app = Table(Box(()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("up", "down", "left", "right", "space", "enter", "escape", "backspace", "u", "ctrl+r", "r")
        assert app.changes == []


# The mouse.


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


# What the app gives.


async def test_targets_are_judged_ahead_a_few_at_a_time() -> None:
    app = Table(uniform(16), Placement((tuple(range(8)), tuple(range(8, 15)))))
    async with app.run_test(size=(200, 50)) as pilot:
        await pilot.press("space")
        drag_now = app.board.drag
        assert drag_now is not None
        for _ in range(100):
            if len(app.board._previews.by_target) == len(drag_now.targets()):
                break
            await pilot.pause(0.05)
        assert set(app.board._previews.by_target) == set(drag_now.targets())


async def test_another_placement_from_the_app_can_be_undone_unless_it_is_another_engines() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        app.board.show_placement(Placement(((1, 2),)))
        await pilot.press("u")
        assert app.board.placement == Placement()
        app.board.show_placement(Placement(((0,),)), undoable=False)
        await pilot.press("u")
        assert app.board.placement == Placement(((0,),))


async def test_without_a_judge_cards_can_be_placed_all_the_same() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        app.board.judge = None
        await pilot.press("space", "right", "space")
        assert app.changes == [Placement(((0,),))]
        assert app.status() == "\n"
        app.board.show_judgement(judge(app.board.placement))
        assert "ready" in app.status()


async def test_an_empty_board_says_the_next_step_and_a_full_pool_that_it_is_empty() -> None:
    app = Table()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert "Lift one from the pool and drop it here." in app.stages()
        app.board.show_placement(Placement(((0,), (1,), (2,))))
        assert "all placed" in app.query_one(PoolView).plain


async def test_occupants_are_marked_in_the_pool() -> None:
    app = Table()
    async with app.run_test(size=(120, 30)):
        app.board.show_occupants({1: "coder 13.9\x1b GiB"})
        assert "▲ coder 13.9^[ GiB" in app.query_one(PoolView).plain


def grounds(app: Table, row: int) -> list[str]:
    return [names for _, names in app.query_one(PoolView).lines[row]]


async def test_the_cursor_is_seen_only_where_keys_go() -> None:
    app = Table()
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        assert any("cursor" in names for names in grounds(app, 2))
        app.set_focus(None)
        await pilot.pause()
        assert not any("cursor" in names for names in grounds(app, 2))


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark", "ansi-light"])
async def test_words_can_be_read_on_every_ground(theme: str) -> None:
    app = Table()
    async with app.run_test(size=(120, 30)) as pilot:
        app.theme = theme
        await pilot.pause()
        stages = app.query_one(StagesView)
        for ground in BACKGROUNDS:
            for words in FOREGROUNDS:
                style = stages.style_of(f"{words} {ground}")
                assert style.color is not None
                # A terminal's own default is one colour in front and another behind.
                assert style.color.is_default or style.color != style.bgcolor


async def test_ascii_draws_in_ascii() -> None:
    app = Table(placement=Placement(((1,), (2,))), glyphs=Glyphs.ascii())
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("space", "right", "right")
        assert app.stages().isascii()
        assert app.query_one(PoolView).plain.isascii()
        assert app.status().isascii()
        app.board.use_glyphs(Glyphs.unicode())
        assert not app.stages().isascii()


async def test_the_board_follows_a_resize() -> None:
    app = Table(placement=Placement(((1,), (2,))))
    async with app.run_test(size=(200, 50)) as pilot:
        wide = app.query_one(PoolView).size.width
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert app.query_one(PoolView).size.width < wide
        assert not app.query_one(StagesView).show_horizontal_scrollbar
        await pilot.press("space")
        await pilot.press("right")
        assert "back" not in app.query_one(PoolView).plain
        assert app.board.drag is not None
        assert app.board.drag.target != Pool()
