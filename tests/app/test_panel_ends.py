"""What the panel says of engines that end by themselves, and of those that serve already."""

import os
import signal
from dataclasses import replace

import pytest

from gpudeck.app import state as states
from gpudeck.app.messages import UnitChanged
from gpudeck.services.engine.types import Scope, UnitState
from tests.app.panels import COMPACT, WIDE, Desk, demo, panel
from tests.rigs.at_the_panel import free_port

pytestmark = [pytest.mark.panel, pytest.mark.usefixtures("home")]
LLAMA = "demo-llama-3.1-8b"


async def serving(desk: Desk) -> int:
    """The simulated engine, ready; its main process."""
    await desk.choose_model(LLAMA)
    await desk.set_option("--port", str(free_port()))
    await desk.place((1,))
    await desk.start()
    await desk.is_(LLAMA, "ready")
    await desk.hears(f"{LLAMA} is ready.")
    pid = desk.panel.state.engines[LLAMA].unit.main_pid
    assert pid is not None
    return pid


@pytest.mark.parametrize("pane", "12345")
async def test_the_death_of_a_serving_engine_is_told_on_every_pane(pane: str) -> None:
    async with panel(demo(), COMPACT) as desk:
        pid = await serving(desk)
        await desk.press("escape", pane)
        desk.panel.clear_notifications()
        os.kill(pid, signal.SIGKILL)
        await desk.hears(f"{LLAMA} ended while it served. It was killed by SIGKILL")
        assert desk.word(LLAMA) == "failed"
        await desk.sees("killed by SIGKILL")


async def test_between_two_tries_neither_ready_nor_a_phase_is_shown() -> None:
    async with panel(demo(), WIDE) as desk:
        deck_panel = desk.panel
        alive = UnitState("other", "vllm-other.service", Scope.SYSTEM, managed=False, active="active", main_pid=71)
        deck_panel.post_message(UnitChanged(alive))
        await desk.is_("other", "starting")
        deck_panel.change(states.with_engine(deck_panel.state, "other", ready=True))
        await desk.sees("other  ready")
        crashed = replace(
            alive, active="activating", sub="auto-restart", result="signal", exit_status=137, main_pid=None, restarts=1
        )
        deck_panel.post_message(UnitChanged(crashed))
        await desk.hears("other ended while it served and is started again. It was killed by SIGKILL")
        assert desk.word("other") == "restarting"
        assert "ready" not in next(line for line in desk.shown.splitlines() if "restarting" in line)


async def test_one_that_crashes_again_and_again_is_told_once() -> None:
    async with panel(demo(), WIDE) as desk:
        unit = UnitState("loops", "vllm-loops.service", Scope.SYSTEM, managed=False, active="active", main_pid=71)
        told = "loops ended before it was ready and is started again. It ended with exit status 1"
        for number in range(1, 4):
            desk.panel.post_message(UnitChanged(replace(unit, main_pid=70 + number, restarts=number - 1)))
            crashed = replace(
                unit, active="activating", sub="auto-restart", result="exit-code", exit_status=1, main_pid=None
            )
            desk.panel.post_message(UnitChanged(replace(crashed, restarts=number)))
            await desk.is_("loops", "restarting")
            await desk.hears(told)
            if number == 1:
                desk.panel.clear_notifications()
                desk.panel.say(told)
        assert len([notice for notice in desk.notices if told in notice]) == 1


async def test_one_that_served_before_the_panel_was_opened_is_no_news() -> None:
    async with panel(demo(), WIDE) as desk:
        await serving(desk)
        await desk.press("q")
        await desk.sees("Esc stay")
        await desk.press("n")
    async with panel(demo(), WIDE) as desk:
        await desk.is_(LLAMA, "ready")
        assert desk.notices == []


async def test_the_way_to_stay_is_shown() -> None:
    async with panel(demo(), COMPACT) as desk:
        await serving(desk)
        await desk.press("q")
        await desk.sees("Esc stay")
        await desk.press("escape")
        await desk.until(lambda: desk.panel.screen is desk.panel.deck, "the deck")
        assert desk.word(LLAMA) == "ready"


async def test_a_notice_that_is_up_is_not_put_up_again() -> None:
    async with panel(demo(), WIDE) as desk:
        for _ in range(4):
            await desk.press("s")
        await desk.hears("Choose a model first")
        await desk.pilot.pause()
        assert len(desk.notices) == 1


async def test_enter_in_the_chat_says_what_is_missing() -> None:
    async with panel(demo(), COMPACT) as desk:
        await desk.press("5")
        await desk.write("hello")
        await desk.press("enter")
        await desk.hears("There is no engine to talk to: s starts the plan on the board, Ctrl+O names a server")
        assert desk.panel.deck.chat.query_one("ChatInput").text == "hello"  # type: ignore[attr-defined]
        unit = UnitState("idle", "vllm-idle.service", Scope.SYSTEM, managed=True, active="inactive")
        desk.panel.post_message(UnitChanged(unit))
        await desk.is_("idle", "stopped")
        await desk.press("enter")
        await desk.hears("What idle runs can not be read")


@pytest.mark.parametrize(("size", "shown"), [((59, 24), "59 × 24"), ((80, 15), "80 × 15"), ((20, 6), "")])
async def test_a_terminal_that_is_too_small_says_so(size: tuple[int, int], shown: str) -> None:
    async with panel(demo(), COMPACT) as desk:
        await desk.press("3")
        await desk.pilot.resize_terminal(*size)
        await desk.until(lambda: "60 × 16" in desk.shown, "the size that is needed")
        assert shown in desk.shown
        assert "Engines" not in desk.shown
        await desk.pilot.resize_terminal(*COMPACT)
        await desk.sees("3 Engines")
        assert desk.panel.deck.engine_list.has_focus
