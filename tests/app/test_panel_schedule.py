"""A restart by the clock, asked for at the panel where no systemd runs."""

from pathlib import Path

import pytest

from gpudeck.services.engine import choose
from gpudeck.services.plan.types import EngineOptions
from tests.app.panels import COMPACT, WIDE, demo, panel
from tests.rigs.at_the_panel import free_port
from tests.rigs.small_engines import engine

pytestmark = pytest.mark.panel


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_what_can_not_be_is_one_sentence(home: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    runner = choose.open_runner(demo=True)
    runner.install(engine(tmp_path, "clocked", "exit", options=EngineOptions(port=free_port())))
    async with panel(demo(), size) as desk:
        await desk.is_("clocked", "stopped")
        await desk.press("3", "T")
        await desk.sees("Restart clocked by the clock")
        await desk.press("escape")
        await desk.until(lambda: desk.panel.screen is desk.panel.deck, "dialog gone")
        await desk.press("T")
        await desk.sees("A systemd timer restarts it")
        await desk.write("daily")
        await desk.press("enter")
        await desk.hears("Without systemd nothing can restart clocked by the clock")
