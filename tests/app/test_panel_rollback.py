"""Back to the last plan of an engine that reached ready, at the panel and by a command."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.services.engine import choose
from gpudeck.services.engine.types import Runner
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineSpec
from tests.app.panels import demo, panel
from tests.rigs.as_command import Gpudeck
from tests.rigs.at_the_panel import free_port
from tests.rigs.counting_engine import CountingEngine

pytestmark = pytest.mark.panel


@pytest.fixture
def runner(home: Path) -> Runner:
    return choose.open_runner(demo=True)


@pytest.fixture
def ran(gpudeck: Gpudeck, runner: Runner, tmp_path: Path) -> EngineSpec:
    """An engine that reached ready by this spec, and then was given one by which it ends at once."""
    spec = CountingEngine(tmp_path, "counts", free_port()).spec
    model = tmp_path / "model"
    model.mkdir()
    spec = replace(spec, model=str(model))
    runner.install(spec)
    assert gpudeck("start", "counts", "--demo").code == 0
    runner.stop("counts")
    runner.install(replace(spec, program=("/bin/false",)))
    return spec


async def test_one_key_shows_the_last_plan_that_ran_and_goes_back_to_it(runner: Runner, ran: EngineSpec) -> None:
    async with panel(demo()) as desk:
        await desk.until(lambda: desk.panel.deck.engine_list.current == "counts", "engine in the list")
        await desk.until(lambda: desk.panel.state.engines["counts"].kept.ready, "what is kept")
        await desk.press("3", "s")
        await desk.is_("counts", "failed")
        await desk.press("B")
        await desk.sees("it reached ready before")
        assert runner.state("counts").spec != ran  # type: ignore[union-attr]
        await desk.press("enter")
        await desk.is_("counts", "ready")
        assert runner.state("counts").spec == ran  # type: ignore[union-attr]
        await desk.press("B")
        await desk.hears("No other plan of counts has reached ready yet")


def test_the_command_shows_it_asks_and_goes_back(gpudeck: Gpudeck, runner: Runner, ran: EngineSpec) -> None:
    asked = gpudeck("rollback", "counts", "--demo")
    assert (asked.code, "as it last ran, and starts counts." in asked.out) == (1, True)
    assert runner.state("counts").spec != ran  # type: ignore[union-attr]
    done = gpudeck("rollback", "counts", "--demo", "--yes")
    assert (done.code, "counts is ready at" in done.out) == (0, True)
    assert runner.state("counts").spec == ran  # type: ignore[union-attr]
    again = gpudeck("rollback", "counts", "--demo", "--yes")
    assert again.err == ("gpudeck: No other plan of counts has reached ready yet, so there is none to go back to.\n")


def test_what_was_changed_since_it_was_shown_is_not_written_over(runner: Runner, ran: EngineSpec) -> None:
    shown = runner.preview(ran)
    runner.install(replace(ran, program=("/bin/true",)))
    with pytest.raises(OperatorError, match="was changed meanwhile"):
        runner.install(ran, shown=shown)
    runner.install(ran, shown=runner.preview(ran))
