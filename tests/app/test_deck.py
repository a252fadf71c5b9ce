"""The screen as a whole: where keys go, which keys are offered, what has room."""

from dataclasses import replace
from functools import partial

import pytest
from textual.widget import Widget

from gpudeck.widgets.board.views import StagesView
from gpudeck.widgets.chat_input import ChatInput
from tests.app.panels import COMPACT, Desk, demo, panel
from tests.rigs.at_the_panel import free_port

pytestmark = [pytest.mark.panel, pytest.mark.usefixtures("home")]
LLAMA = "demo-llama-3.1-8b"
QWEN = "demo-qwen2.5-14b"
LARGE = (200, 50)
SMALL_WIDE = (120, 36)


def heads(desk: Desk) -> dict[str, Widget]:
    """What has the focus when a pane is opened."""
    deck = desk.panel.deck
    field = deck.query_one(ChatInput)
    return {"1": deck.cards, "2": deck.board, "3": deck.engine_list, "4": deck.log_pane.view, "5": field}


def in_use(widget: Widget) -> bool:
    return widget.has_focus and bool(widget.region)


def bar(desk: Desk) -> str:
    return desk.panel.deck.keys.plain


@pytest.mark.parametrize("size", [LARGE, COMPACT], ids=["wide", "compact"])
async def test_a_number_opens_a_pane_and_escape_leaves_the_field(size: tuple[int, int]) -> None:
    async with panel(demo(), size) as desk:
        deck = desk.panel.deck
        for key, widget in heads(desk).items():
            await desk.press(key)
            await desk.until(partial(in_use, widget), f"pane {key}")
        await desk.press("1")  # a letter as any other, in the field
        assert deck.query_one(ChatInput).text == "1"
        await desk.press("escape")
        out = deck.tabs if size == COMPACT else deck.engine_list
        await desk.until(lambda: out.has_focus, "way out")
        await desk.press("2")
        await desk.until(lambda: deck.board.has_focus, "board")


async def test_arrows_go_along_the_tabs_and_enter_goes_in() -> None:
    async with panel(demo(), COMPACT) as desk:
        deck = desk.panel.deck
        deck.tabs.focus()
        await desk.press("right")
        await desk.until(lambda: deck.engine_list.region and not deck.board.region, "engines")
        assert deck.tabs.has_focus
        await desk.press("right", "right")
        await desk.until(lambda: deck.chat.region, "chat")
        assert deck.tabs.has_focus
        await desk.press("enter")
        await desk.until(lambda: deck.query_one(ChatInput).has_focus, "field")


async def test_a_click_on_a_tab_goes_into_its_pane() -> None:
    async with panel(demo(), COMPACT) as desk:
        await desk.pilot.click("#tab-box")
        await desk.until(lambda: desk.panel.deck.cards.has_focus and desk.panel.deck.cards.region, "box")


async def test_a_start_shows_the_log_and_the_keys_go_there() -> None:
    async with panel(demo(), COMPACT) as desk:
        await desk.choose_model(LLAMA)
        await desk.set_option("--port", str(free_port()))
        await desk.place((1,))
        await desk.start()
        await desk.until(lambda: desk.panel.deck.log_pane.view.has_focus, "log")
        await desk.is_(LLAMA, "ready")
        await desk.sees(f"● {LLAMA} ready · plan ● ready")
        assert "s start" not in bar(desk)  # it runs from this very plan
        assert "x stop" in bar(desk)


async def test_a_terminal_that_becomes_narrow_shows_the_pane_that_had_the_keys() -> None:
    async with panel(demo(), LARGE) as desk:
        await desk.press("1")
        await desk.pilot.resize_terminal(*COMPACT)
        await desk.until(lambda: desk.panel.deck.tabs.pane == "box" and desk.panel.deck.cards.region, "box")
        assert desk.panel.deck.cards.has_focus


async def test_only_keys_that_do_something_are_offered_and_help_always_is() -> None:
    async with panel(demo(), COMPACT) as desk:
        await desk.until(lambda: "m model" in bar(desk), "keys")
        for nothing in ("start", "stop", "chat", "propose", "pool", "undo"):
            assert nothing not in bar(desk)
        await desk.choose_model(LLAMA)
        await desk.place((1,))
        await desk.until(lambda: "s start" in bar(desk), "start")
        assert bar(desk).endswith("? help  q quit")
        assert "Backspace to the pool" in bar(desk)
        await desk.press("space")
        await desk.until(lambda: "Space drop  Esc put back" in bar(desk), "drop")
        assert "start" not in bar(desk)
        await desk.press("escape", "5")
        await desk.until(lambda: bar(desk).endswith("F1 help  Ctrl+Q quit"), "keys that are no letters")


async def test_a_blocked_plan_is_not_offered_to_start() -> None:
    async with panel(demo(), LARGE) as desk:
        await desk.choose_model(QWEN)
        await desk.place((0, 1, 2))
        await desk.sees("✗ blocked")
        assert "start" not in bar(desk)


async def test_the_board_stays_where_it_is_while_a_card_is_in_the_air() -> None:
    async with panel(demo(), LARGE) as desk:
        await desk.choose_model(QWEN)
        await desk.place((1, 2))
        view = desk.panel.deck.query_one(StagesView)
        before = view.region
        await desk.press("space")
        for key in ("right", "right", "left", "up", "left", "left"):
            await desk.press(key)
            assert view.region == before


@pytest.mark.parametrize(
    ("box", "size", "shown"),
    [("mixed", LARGE, True), ("two-sockets", LARGE, True), ("sixteen", LARGE, False), ("sixteen", SMALL_WIDE, False)],
)
async def test_links_stand_where_the_cards_leave_room_and_t_turns_them(
    box: str, size: tuple[int, int], shown: bool
) -> None:
    async with panel(demo(box), size) as desk:
        links = desk.panel.deck.query_one("#links")
        await desk.until(lambda: links.display is shown, f"links {shown}")
        # Shown as a matrix they turn into their map before they go.
        await desk.press(*["t"] * (2 if shown else 1))
        await desk.until(lambda: links.display is not shown, "links turned")


@pytest.mark.parametrize("size", [LARGE, SMALL_WIDE])
async def test_sixteen_cards_are_seen_at_once(size: tuple[int, int]) -> None:
    async with panel(demo("sixteen"), size) as desk:
        cards = desk.panel.deck.cards
        await desk.until(lambda: len(cards.lines) == 16, "a row for each card")
        assert cards.room.height >= 16


async def test_where_only_ascii_is_shown_nothing_else_is_drawn() -> None:
    async with panel(replace(demo(), ascii_only=True), COMPACT) as desk:
        await desk.choose_model(LLAMA)
        await desk.set_option("--port", str(free_port()))
        await desk.place((1,))
        await desk.press("question_mark")
        await desk.sees("Everywhere")
        assert desk.shown.isascii()
        await desk.press("escape")
        await desk.start()
        # The log holds bars of full blocks, and the tabs scroll bars.
        await desk.is_(LLAMA, "ready")
        await desk.sees("Capturing CUDA graphs")
        for key in "12345":
            await desk.press(key)
            assert desk.shown.isascii()
            if key == "5":
                await desk.press("escape")


async def test_what_arrives_while_the_panel_goes_down_does_not_break_it() -> None:
    async with panel(demo(), COMPACT) as desk:
        deck = desk.panel.deck
    deck.show_keys()


async def test_keys_are_right_again_after_a_dialog() -> None:
    async with panel(demo(), COMPACT) as desk:
        await desk.press("m")
        await desk.until(lambda: desk.panel.screen is not desk.panel.deck, "dialog")
        await desk.sees("demo-llama")
        await desk.press("enter")
        await desk.until(lambda: "p propose" in bar(desk), "keys for the model")
