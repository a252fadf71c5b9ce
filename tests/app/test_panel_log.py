"""The log pane of the open panel: why an engine died, its earlier starts, copied and saved."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudeck.app.log_acts import beginning
from gpudeck.services.engine.choose import open_runner
from gpudeck.services.engine.types import Runner, Scope
from gpudeck.services.plan.types import EngineOptions
from gpudeck.widgets.log_line import Level
from tests.app.panels import COMPACT, WIDE, Desk, demo, panel
from tests.rigs.at_the_panel import free_port
from tests.rigs.small_engines import engine, until

pytestmark = pytest.mark.panel
DIES = """
n=$(cat {folder}/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > {folder}/n
echo "INFO 12-01 01:17:56 [api_server.py:1] start $n"
if [ $n = 1 ]; then
    echo 'Traceback (most recent call last):'
    echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.'
    echo 'RuntimeError: Engine core initialization failed. See root cause above.'
    i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo "after $i"; done
    exit 1
fi
exec sleep 1000"""


@pytest.fixture
def runner(home: Path) -> Iterator[Runner]:
    runner = open_runner(demo=True, scope=Scope.EMBEDDED)
    yield runner
    runner.close()


@pytest.fixture
def twice(home: Path, runner: Runner, tmp_path: Path) -> str:
    """An engine that died at its first start and runs since its second."""
    folder = tmp_path / "twice"
    folder.mkdir()
    script = DIES.format(folder=folder)
    runner.install(engine(folder, "twice", script, model=str(folder), options=EngineOptions(port=free_port())))
    runner.start("twice")
    until("it does not die", lambda: runner.starts("twice")[0].failed)
    runner.start("twice")
    return "twice"


async def at_the_log(desk: Desk, name: str) -> None:
    await desk.until(lambda: name in desk.panel.state.engines, name)
    await desk.press("3")
    while desk.panel.state.selected != name:
        await desk.press("down")
        await desk.pilot.pause()
    await desk.press("4")
    await desk.sees("start 2")


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_an_earlier_start_is_chosen_and_left(twice: str, size: tuple[int, int]) -> None:
    async with panel(demo(), size) as desk:
        await at_the_log(desk, twice)
        await desk.press("h")
        await desk.sees("ended with exit status 1")
        assert "runs now" in desk.shown
        await desk.press("down", "enter")
        # It opens at the line that says why, which is not the last one.
        await desk.sees("CUDA out of memory")
        await desk.sees("Esc goes back to the present run")
        assert "start 2" not in desk.shown
        await desk.press("escape")
        await desk.sees("start 2")
        assert "Tried to allocate" not in desk.shown


async def test_the_reason_of_a_start_that_died_is_one_key_away(twice: str, runner: Runner) -> None:
    async with panel(demo()) as desk:
        await at_the_log(desk, twice)
        await desk.press("r")
        await desk.sees("Tried to allocate 2.00 GiB")
        view = desk.panel.deck.log_pane.view
        assert view.current is not None
        assert "Tried to allocate" in view.buffer.text(view.current)
        await desk.hears("The card had no room for 2.00 GiB more")
        # What the present run says meanwhile is not lost, and stays out of the way.
        pid = desk.panel.state.engines[twice].unit.main_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await desk.is_(twice, "failed")
        assert "Tried to allocate" in view.buffer.text(view.current)
        await desk.press("escape")
        await desk.sees("start 2")


async def test_the_reason_in_view_is_found_whatever_the_filter(home: Path, runner: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "once"
    folder.mkdir()
    script = DIES.format(folder=folder)
    runner.install(engine(folder, "once", script, model=str(folder), options=EngineOptions(port=free_port())))
    async with panel(demo()) as desk:
        await desk.until(lambda: "once" in desk.panel.state.engines, "once")
        await desk.press("3", "s")
        await desk.is_("once", "failed")
        await desk.press("4")
        await desk.sees("after 100")
        view = desk.panel.deck.log_pane.view
        view.set_filter(worker="nobody")
        await desk.press("r")
        await desk.until(lambda: view.current is not None, "the reason")
        assert view.current is not None
        assert "Tried to allocate" in view.buffer.text(view.current)
        assert (view.level, view.worker) == (Level.PLAIN, None)
        # Of one that does not run the newest start is read from what is kept: the log in view may hold nothing.
        view.clear()
        await desk.press("h")
        await desk.sees("ended with exit status 1")
        await desk.press("enter")
        await desk.sees("Esc goes back to the present run")
        await desk.sees("Tried to allocate")


async def test_a_log_is_saved_once_and_never_over_another_file(twice: str, home: Path) -> None:
    async with panel(demo(), COMPACT) as desk:
        await at_the_log(desk, twice)
        await desk.press("S")
        await desk.sees("Save the log")
        await desk.press("ctrl+u")
        await desk.paste("~/kept.log")
        await desk.press("enter")
        await desk.hears("The log is in ~/kept.log.")
        kept = home / "kept.log"
        assert kept.read_text().splitlines()[-1].endswith("start 2")
        assert kept.stat().st_mode & 0o077 == 0
        kept.write_text("mine")
        await desk.press("S")
        await desk.sees("Save the log")
        await desk.press("ctrl+u")
        await desk.paste("~/kept.log")
        await desk.press("enter")
        await desk.hears("kept.log is there already: give another name.")
        assert kept.read_text() == "mine"


async def test_what_is_in_view_is_copied(twice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with panel(demo()) as desk:
        await at_the_log(desk, twice)
        await desk.press("y")
        await desk.hears("to your terminal's clipboard")
        assert desk.panel.clipboard == desk.panel.deck.log_pane.view.text()
        assert desk.panel.clipboard.endswith("start 2\n")


@pytest.mark.parametrize(
    ("count", "reason", "begin"),
    [(50, None, 0), (50, 3, 0), (500_000, None, 400_000), (500_000, 450_000, 400_000), (500_000, 5_000, 4_000)],
)
def test_the_reason_is_among_the_lines_of_a_long_log(count: int, reason: int | None, begin: int) -> None:
    assert beginning(count, reason, 100_000) == begin
