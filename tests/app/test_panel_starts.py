"""How far a start is, what to check of one that stands still, and requests in flight before an end."""

from pathlib import Path

import pytest

from gpudeck.services.engine import choose
from gpudeck.services.engine.starts import times
from gpudeck.services.engine.types import Runner
from gpudeck.services.plan.types import EngineOptions
from gpudeck.widgets.question import Question
from tests.app.panels import COMPACT, WIDE, Desk, demo, panel
from tests.rigs.at_the_panel import free_port
from tests.rigs.counting_engine import CountingEngine
from tests.rigs.small_engines import engine

pytestmark = pytest.mark.panel

LLAMA = "demo-llama-3.1-8b"


@pytest.fixture
def runner(home: Path) -> Runner:
    return choose.open_runner(demo=True)


@pytest.fixture
def counts(runner: Runner, tmp_path: Path) -> CountingEngine:
    counting = CountingEngine(tmp_path, "counts", free_port())
    runner.install(counting.spec)
    runner.start("counts")
    return counting


async def test_a_second_start_says_what_is_left_and_then_how_long_it_took(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUDECK_SIMULATOR_SPEED", "2")
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.set_option("--port", str(free_port()))
        await desk.place((1,))
        await desk.start()
        await desk.is_(LLAMA, "ready")
        await desk.sees("ready in ")
        await desk.press("x")
        await desk.sees("No request is in flight.")
        await desk.press("y")
        await desk.is_(LLAMA, "stopped")
        await desk.press("s")
        await desk.until(lambda: desk.panel.state.engines[LLAMA].left, "what is left")
        await desk.is_(LLAMA, "ready")
        await desk.until(lambda: not desk.panel.state.engines[LLAMA].left, "nothing left")


@pytest.mark.parametrize("size", [WIDE, COMPACT])
async def test_a_start_that_stands_still_is_said_to_with_five_things_to_check(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(times, "STILL_S", 0.5)
    runner.install(engine(tmp_path, "stuck", "exec sleep 1000", options=EngineOptions(port=free_port())))
    runner.start("stuck")
    async with panel(demo(), size) as desk:
        await desk.press("3")
        await desk.sees("nothing has moved for")
        await desk.sees("what to check")
        await desk.sees("model path: /models/none is not")
        told = desk.panel.deck.engine_list.plain
        for what in ("tokenizer path:", "memory:", "max-model-len:", "max-num-seqs:"):
            assert what in told


async def ask_to_stop(desk: Desk, key: str = "x") -> None:
    await desk.is_("counts", "ready")
    await desk.press("3", key)
    await desk.until(lambda: isinstance(desk.panel.screen, Question), "question")


async def test_requests_in_flight_are_shown_and_waited_for(runner: Runner, counts: CountingEngine) -> None:
    counts.has(2, 1)
    async with panel(demo()) as desk:
        await ask_to_stop(desk)
        await desk.sees("2 requests run and 1 waits. They end unfinished, or are waited for")
        await desk.press("d")
        await desk.is_("counts", "draining")
        await desk.sees("2 requests run and 1 waits")
        counts.has(1)
        await desk.sees("1 request runs")
        counts.has(0)
        await desk.is_("counts", "stopped")
        await desk.hears("counts is stopped; none of its processes is left.")


async def test_a_drain_can_be_cut_short(runner: Runner, counts: CountingEngine) -> None:
    counts.has(1)
    async with panel(demo()) as desk:
        await ask_to_stop(desk)
        await desk.sees("wait for them")
        await desk.press("d")
        await desk.is_("counts", "draining")
        await desk.press("x")
        await desk.sees("It ends when none is left")
        await desk.press("y")
        await desk.is_("counts", "stopped")


async def test_a_drain_can_be_called_off(runner: Runner, counts: CountingEngine) -> None:
    counts.has(1)
    before = runner.state("counts")
    async with panel(demo()) as desk:
        await ask_to_stop(desk, "R")
        await desk.sees("wait for them")
        await desk.press("d")
        await desk.is_("counts", "draining")
        await desk.press("R")
        await desk.sees("serve on")
        await desk.press("s")
        await desk.hears("counts was not stopped: it goes on serving.")
        await desk.is_("counts", "ready")
    assert runner.state("counts") == before


async def test_enter_answers_nothing_and_escape_leaves_it(runner: Runner, counts: CountingEngine) -> None:
    async with panel(demo()) as desk:
        await ask_to_stop(desk)
        await desk.press("enter")
        assert isinstance(desk.panel.screen, Question)
        await desk.press("escape")
        await desk.until(lambda: desk.panel.screen is desk.panel.deck, "question gone")
        assert desk.word("counts") == "ready"
