"""Checking an engine at the panel: the list, the whole road, the curl line."""

from pathlib import Path

import pytest

from gpudeck.widgets.check_list import CheckList
from tests.app.panels import COMPACT, WIDE, Desk, demo, panel
from tests.rigs.as_command import Gpudeck
from tests.rigs.at_the_panel import free_port

pytestmark = pytest.mark.panel


@pytest.fixture
def chat(gpudeck: Gpudeck) -> str:
    """A demo engine of two stages that is ready."""
    words = ("--stage", "1", "--stage", "2", "--name", "chat", "--port", str(free_port()), "--yes", "--demo")
    assert gpudeck("install", "demo-llama-3.1-8b", *words).code == 0
    assert gpudeck("start", "chat", "--demo").code == 0
    return "chat"


async def ended(desk: Desk) -> None:
    """Wait for the list's last line.  A simulated card is busy for moments only, which a look may miss."""
    await desk.until(lambda: "All of it holds." in desk.shown or "1 failed." in desk.shown, "end of the list", 60)


@pytest.mark.parametrize("size", [WIDE, COMPACT])
async def test_the_list_and_the_whole_road(home: Path, chat: str, size: tuple[int, int]) -> None:
    async with panel(demo(), size) as desk:
        await desk.press("3")
        await desk.is_(chat, "ready")
        await desk.press("C")
        await desk.sees("Check chat")
        await ended(desk)
        await desk.sees("By hand: curl -sS")
        await desk.press("y")
        await desk.hears("in the clipboard as a curl line")
        assert desk.panel.clipboard.startswith("curl -sS http://127.0.0.1:")
        before = desk.panel.state.engines[chat].unit.main_pid

        await desk.press("w")
        await desk.sees("restart chat and check it")
        await desk.press("n")
        await desk.press("w", "y")
        await desk.sees("ready, by its log and its port", 40)
        await ended(desk)
        assert desk.panel.state.engines[chat].unit.main_pid != before
        await desk.press("escape")
        await desk.until(lambda: desk.panel.screen is desk.panel.deck, "list gone")


async def test_a_walk_that_can_not_be_gone_leaves_the_engine_running(home: Path, chat: str) -> None:
    async with panel(demo()) as desk:
        await desk.press("3")
        await desk.is_(chat, "ready")
        await desk.press("C")
        await ended(desk)
        unit = desk.panel.state.engines[chat].unit
        assert unit.spec is not None
        Path(unit.spec.model).rename(home / "unmounted")
        await desk.press("w", "y")
        await desk.sees("is not there: mount it")
        assert isinstance(desk.panel.screen, CheckList)
        assert desk.panel.state.engines[chat].unit.main_pid == unit.main_pid


async def test_without_a_ready_engine_it_says_why(home: Path) -> None:
    async with panel(demo()) as desk:
        await desk.press("3", "C")
        await desk.hears("There is no engine to talk to")
