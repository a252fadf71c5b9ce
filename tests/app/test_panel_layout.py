"""Where things stand: wide and compact, resized while it runs, the help page, and which keys are offered where."""

from dataclasses import replace
from pathlib import Path

import pytest
from textual.binding import Binding

from gpudeck.app import keymap
from gpudeck.widgets.chat_input import ChatInput
from gpudeck.widgets.help_page import HelpPage
from tests.app.panels import COMPACT, WIDE, Desk, demo, panel

pytestmark = [pytest.mark.panel, pytest.mark.usefixtures("home")]

ALL = {"1": "box", "2": "plan", "3": "engines", "4": "log", "5": "chat"}


def visible(desk: Desk) -> set[str]:
    """The panes that take room on the screen."""
    return {pane for pane in ALL.values() if desk.panel.deck.query_one(f"#{pane}").region.area > 0}


async def test_wide_shows_every_pane_at_once() -> None:
    async with panel(demo(), WIDE) as desk:
        assert visible(desk) == set(ALL.values())
        for title in ("Box", "Board", "Engines", "Log", "Chat", "Links"):
            await desk.sees(f" {title} ")


async def test_compact_shows_one_pane_and_keys_and_tabs_change_it() -> None:
    async with panel(demo(), COMPACT) as desk:
        for key, pane in ALL.items():
            await desk.press(key)
            await desk.until(lambda pane=pane: visible(desk) == {pane}, f"{pane} alone")  # type: ignore[misc]
            if pane == "chat":
                await desk.press("escape")
        await desk.pilot.click("#tab-engines")
        await desk.until(lambda: visible(desk) == {"engines"}, "engines alone")


async def test_resized_live_it_changes_its_layout_and_keeps_its_plan() -> None:
    async with panel(demo(), WIDE) as desk:
        await desk.choose_model("demo-llama-3.1-8b")
        await desk.place((1,))
        await desk.pilot.resize_terminal(80, 24)
        await desk.until(lambda: visible(desk) == {"plan"}, "board alone")
        await desk.sees("stage 0")
        await desk.press("1")
        await desk.pilot.resize_terminal(119, 40)
        await desk.until(lambda: visible(desk) == {"box"}, "box alone")
        await desk.pilot.resize_terminal(120, 40)
        await desk.until(lambda: visible(desk) == set(ALL.values()), "all panes")
        assert desk.panel.state.draft.placement.stages == ((1,),)


async def test_help_lists_every_key_and_goes_by_every_way_back() -> None:
    bindings = list(Binding.make_bindings(keymap.BINDINGS))
    for back in ("escape", "q", "question_mark", "enter"):
        async with panel(demo(), (150, 60)) as desk:
            await desk.press("question_mark")
            await desk.until(lambda: isinstance(desk.panel.screen, HelpPage), "help")
            shown = desk.shown
            for binding in bindings:
                assert binding.description[1:] in shown, binding.description
            for title in ("Everywhere", "Board", "Engines", "Log", "Chat"):
                assert title in shown
            await desk.press(back)
            await desk.until(lambda: desk.panel.screen is desk.panel.deck, "help gone")


async def test_in_the_chat_field_letters_are_letters_and_escape_leaves_it() -> None:
    async with panel(demo(), COMPACT) as desk:
        await desk.press("c")
        await desk.until(lambda: isinstance(desk.panel.focused, ChatInput), "field")
        await desk.write("quit xRD?")
        assert desk.panel.query_one(ChatInput).text == "quit xRD?"
        assert not desk.panel._exit
        await desk.press("escape", "2")
        await desk.until(lambda: visible(desk) == {"plan"}, "board")
        # What was typed stays.
        assert desk.panel.query_one(ChatInput).text == "quit xRD?"


async def test_links_come_and_go() -> None:
    async with panel(demo(), WIDE) as desk:
        links = desk.panel.deck.query_one("#links")
        await desk.sees("bonded NVLinks")
        await desk.press("t")
        await desk.sees("pair · NV12")
        await desk.press("t")
        await desk.until(lambda: links.region.area == 0, "links gone")
        await desk.press("t")
        await desk.until(lambda: links.region.area > 0, "links back")
        await desk.sees("bonded NVLinks")


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_ascii_only_draws_nothing_else(size: tuple[int, int]) -> None:
    async with panel(replace(demo(), ascii_only=True), size) as desk:
        await desk.choose_model("demo-llama-3.1-8b")
        await desk.place((1, 2))
        for key in "12345":
            await desk.press(key)
            odd = {letter for letter in desk.shown if not letter.isascii()}
            assert not odd, odd
        await desk.press("escape", "x")
        await desk.hears("There is no engine here yet")
        await desk.sees("There is no engine here")
        odd = {letter for letter in desk.shown if not letter.isascii()}
        assert not odd, odd
        for key in ("m", "a", "v", "f1"):
            await desk.press(key)
            await desk.until(lambda: desk.panel.screen is not desk.panel.deck, f"dialog of {key}")
            odd = {letter for letter in desk.shown if not letter.isascii()}
            assert not odd, (key, odd)
            await desk.press("escape")
            await desk.until(lambda: desk.panel.screen is desk.panel.deck, "dialog gone")


async def test_a_large_box_is_shown(home: Path) -> None:
    async with panel(demo("sixteen"), COMPACT) as desk:
        await desk.press("1", "end")
        await desk.sees("15")
        await desk.press("2")
        await desk.choose_model("demo-llama-3.1-8b")
        await desk.press("p")
        await desk.hears("Proposed for context: ")
