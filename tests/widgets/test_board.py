"""The board under the keys, and under what the app gives it."""

import pytest

from gpudeck.services.box.types import Box
from gpudeck.services.plan.dragging import OnCard, Pool
from gpudeck.services.plan.types import Placement
from gpudeck.widgets.board.views import PoolView, StagesView
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import BACKGROUNDS, FOREGROUNDS
from tests.widgets.board_boxes import judge, uniform
from tests.widgets.board_table import SIZES, Table

# Keys.


@SIZES
async def test_two_cards_into_one_group_by_keys_alone(size: tuple[int, int]) -> None:
    app = Table()
    async with app.run_test(size=size) as pilot:
        await pilot.press("down", "space", "right", "space")  # card 1 becomes stage 0
        assert app.board.placement.stages == ((1,),)
        await pilot.press("left", "down", "space", "l", "l", "enter")  # card 2 joins it
        assert app.changes == [Placement(((1,),)), Placement(((1, 2),))]
        assert "█ weights" in app.status()
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


async def test_a_copy_more_and_one_less_by_keys() -> None:
    app = Table(uniform(4), placement=Placement(((0,),)))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("plus", "plus")
        assert app.board.placement == Placement(((0,), (1,), (2,)), 3)
        assert "copy 2" in app.stages()
        assert "┃" in app.stages()  # copies hand each other nothing
        await pilot.press("minus")
        assert app.board.placement == Placement(((0,), (1,)), 2)
        await pilot.press("u")
        assert app.board.placement.replicas == 3
        app.board.show_occupants({3: "coder 20.0 GiB"})
        await pilot.press("plus")
        assert app.refusals == [
            "One more copy takes 1 card, and none are free: make the copies smaller, or free cards of other plans."
        ]


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
        assert app.status() == ""
        app.board.show_judgement(judge(app.board.placement))
        assert "KV cache" in app.status()


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
