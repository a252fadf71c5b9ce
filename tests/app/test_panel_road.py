"""The road from bare cards to an answer and back, by keys alone, on the simulated box."""

import pytest

from gpudeck.services.plan.findings import VerdictState
from tests.app.panels import COMPACT, WIDE, demo, panel
from tests.rigs.at_the_panel import answered, free_port

pytestmark = [pytest.mark.panel, pytest.mark.usefixtures("home")]
LLAMA = "demo-llama-3.1-8b"


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_the_whole_road_by_keys(size: tuple[int, int]) -> None:
    async with panel(demo(), size) as desk:
        await desk.choose_model(LLAMA)
        await desk.set_option("--port", str(free_port()))
        await desk.place((1, 2))
        await desk.until(lambda: desk.panel.state.judgement.state is VerdictState.READY, "verdict")
        await desk.sees("ready")
        await desk.start()
        await desk.sees("Application startup complete")  # its log is shown
        await desk.is_(LLAMA, "ready")
        await desk.hears(f"{LLAMA} is ready.")
        await desk.press("c")
        await desk.write("what are you?")
        await desk.press("enter")
        await desk.sees("What is real")
        await desk.until(lambda: answered(desk.shown), "answer")
        await desk.press("escape", "3", "x")
        await desk.sees(f"stop {LLAMA}")
        await desk.press("enter")  # pressed too easily: it answers nothing
        await desk.press("y")
        await desk.is_(LLAMA, "stopped")
        await desk.hears("none of its processes is left")
