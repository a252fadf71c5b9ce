"""What an operator does to engines at the panel, with real processes under the embedded runner."""

import shutil
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.app.programs import EngineProgram
from gpudeck.services.engine import choose
from gpudeck.services.engine.types import Runner
from gpudeck.services.plan.types import EngineOptions, Placement
from gpudeck.widgets.confirm import Confirm
from gpudeck.widgets.unit_preview import UnitPreview
from tests.app.panels import COMPACT, Desk, demo, panel
from tests.rigs.at_the_panel import free_port
from tests.rigs.small_engines import engine, until

pytestmark = pytest.mark.panel

LLAMA = "demo-llama-3.1-8b"


@pytest.fixture
def runner(home: Path) -> Runner:
    return choose.open_runner(demo=True)


def small(
    folder: Path, name: str, runner: Runner, script: str = "echo up; exec sleep 1000", *, port: int = 0, card: int = 0
) -> None:
    """An engine that is installed, its program a shell script, its model an empty folder."""
    model = folder / "model"
    model.mkdir(parents=True, exist_ok=True)
    options, placement = EngineOptions(port=port or free_port()), Placement(((card,),))
    runner.install(engine(folder, name, script, model=str(model), options=options, placement=placement))


async def select(desk: Desk, name: str) -> None:
    await desk.press("3")
    await desk.until(lambda: desk.panel.deck.engine_list.current, "engine in the list")
    await desk.press("home")
    while desk.panel.deck.engine_list.current != name:
        await desk.press("down")


async def test_not_now_writes_and_starts_nothing(home: Path, runner: Runner) -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.place((1,))
        await desk.press("s")
        await desk.sees("What will run")
        await desk.sees("CUDA_VISIBLE_DEVICES")
        await desk.press("escape")
        await desk.until(lambda: desk.panel.screen is desk.panel.deck, "dialog gone")
        assert runner.engines() == ()
        assert not list(home.rglob("command.json"))


async def test_an_engine_tells_what_it_does_and_its_log_stays_clean(home: Path, runner: Runner) -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.set_option("--port", str(free_port()))
        await desk.place((1,))
        await desk.start()
        await desk.is_(LLAMA, "ready")
        await desk.sees("KV cache  0 running")
        await desk.press("c", *"hello", "enter")
        await desk.sees(" tokens · ")  # below the answer; Escape before that would break it off
        await desk.press("escape", "3")
        await desk.sees("whole answer")
        log = (next(home.rglob("engine.log"))).read_text()
        assert "POST /v1/chat/completions" in log
        assert "GET /metrics" not in log
        # Nobody sees the list: nobody asks.
        await desk.press("4", "z")
        await desk.until(lambda: not desk.panel._asked_of, "no question any more")


async def test_an_engine_that_would_log_every_look_is_left_alone(home: Path, runner: Runner, tmp_path: Path) -> None:
    port = free_port()
    serves = (
        f"exec {sys.executable} -m gpudeck.services.simulator serve {tmp_path}/m --host 127.0.0.1 --port {port} "
        "--load-format dummy"
    )
    shutil.copytree(Path(__file__).parents[1] / "data" / "models" / "llama-3.2-1b", tmp_path / "m")
    small(tmp_path, "chatty", runner, serves, port=port)
    runner.start("chatty")
    async with panel(demo()) as desk:
        await desk.is_("chatty", "ready")
        await select(desk, "chatty")
        await desk.sees("this engine logs every request")
        assert "GET /metrics" not in next(home.rglob("engine.log")).read_text()


async def test_what_was_approved_once_starts_with_one_key(home: Path, runner: Runner) -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.set_option("--port", str(free_port()))
        await desk.place((1,))
        await desk.start()
        await desk.is_(LLAMA, "ready")
        await desk.press("s")
        await desk.hears("runs from this very unit")
        await desk.press("x")
        await desk.sees(f"stop {LLAMA}")
        await desk.press("y")
        await desk.is_(LLAMA, "stopped")
        await desk.press("s")
        await desk.is_(LLAMA, "ready")
        assert desk.panel.screen is desk.panel.deck
        # Changed, it is shown again, as what it changes.
        await desk.set_option("--max-num-seqs", "7")
        await desk.press("s")
        await desk.until(lambda: isinstance(desk.panel.screen, UnitPreview), "preview")
        await desk.sees("--max-num-seqs")
        await desk.sees("restart")


async def test_a_restart_that_would_end_at_its_port_is_refused_while_it_runs(
    home: Path, runner: Runner, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        small(tmp_path / "a", "kept", runner, port=taken.getsockname()[1])
        runner.start("kept")
        before = runner.state("kept")
        async with panel(demo()) as desk:
            await desk.is_("kept", "starting")
            await select(desk, "kept")
            await desk.press("R")
            await desk.sees("restart kept")
            await desk.press("y")
            await desk.hears("is already used by")
        assert runner.state("kept") == before


async def test_an_engine_that_would_collide_with_one_that_runs_is_not_started(
    home: Path, runner: Runner, tmp_path: Path
) -> None:
    small(tmp_path / "a", "first", runner)
    small(tmp_path / "b", "second", runner)
    runner.start("first")
    async with panel(demo()) as desk:
        await desk.is_("first", "starting")
        await select(desk, "second")
        await desk.press("s")
        await desk.hears("GPU 0 belongs to first, which runs")
        assert desk.word("second") == "stopped"
        state = runner.state("second")
        assert state is not None
        assert state.since is None


async def test_v_shows_the_unit_and_starts_nothing(home: Path, runner: Runner) -> None:
    async with panel(demo()) as desk:
        await desk.choose_model("demo-llama-3.3-70b")
        await desk.place((0, 1))
        await desk.press("s")
        await desk.hears("Blocked: ")
        await desk.press("v")
        await desk.sees("What will run")
        await desk.press("enter")
        await desk.until(lambda: desk.panel.screen is desk.panel.deck, "dialog gone")
        assert runner.engines() == ()


async def test_each_missing_step_is_named(home: Path) -> None:
    async with panel(demo()) as desk:
        for key, sentence in (
            ("s", "Choose a model first"),
            ("v", "Choose a model first"),
            ("p", "Choose a model first"),
            ("x", "There is no engine here yet"),
            ("R", "There is no engine here yet"),
            ("D", "There is no engine here yet"),
        ):
            await desk.press(key)
            await desk.hears(sentence)
            desk.panel.clear_notifications()
        await desk.choose_model(LLAMA)
        await desk.press("s")
        await desk.hears("Put a card on the board first")


async def test_p_puts_the_best_placement_on_the_board(home: Path) -> None:
    async with panel(demo()) as desk:
        await desk.choose_model("demo-qwen2.5-14b")
        await desk.press("p")
        await desk.hears("Proposed for context: ")
        assert desk.panel.state.draft.placement.stages
        assert desk.panel.state.draft.placement == desk.panel.deck.board.placement


async def test_no_vllm_on_this_machine(home: Path) -> None:
    async with panel(replace(demo(), program=EngineProgram(("vllm",), found=False))) as desk:
        await desk.choose_model(LLAMA)
        await desk.place((1,))
        await desk.press("s")
        await desk.hears("No vllm was found on this machine: put it on PATH, or name it in GPUDECK_VLLM.")


async def test_two_engines_each_with_its_own_log(home: Path, runner: Runner, tmp_path: Path) -> None:
    small(tmp_path / "a", "first", runner, "echo I am the first; exec sleep 1000")
    small(tmp_path / "b", "second", runner, "echo I am the second; exec sleep 1000", card=1)
    async with panel(demo()) as desk:
        await select(desk, "first")
        await desk.press("s")
        await desk.is_("first", "starting")
        await desk.sees("I am the first")
        await select(desk, "second")
        await desk.press("s")
        await desk.sees("I am the second")
        assert "I am the first" not in desk.shown
        await select(desk, "first")
        await desk.sees("I am the first")
        assert "I am the second" not in desk.shown
        await desk.press("x")
        await desk.sees("stop first")
        await desk.press("y")
        await desk.is_("first", "stopped")
        assert desk.word("second") == "starting"


async def test_enter_puts_an_engines_plan_on_the_board(home: Path, runner: Runner) -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.set_option("--port", str(free_port()))
        await desk.place((2, 1))
        await desk.start()
        await desk.is_(LLAMA, "ready")
        await desk.choose_model("demo-qwen2.5-14b")
        await desk.press("2", "backspace")
        await select(desk, LLAMA)
        await desk.press("enter")
        await desk.until(
            lambda: desk.panel.state.draft.model and desk.panel.state.draft.model.name == LLAMA, "its model"
        )
        assert desk.panel.state.draft.placement.stages == ((2, 1),)
        assert desk.panel.state.draft.name == LLAMA


async def test_an_engine_of_another_name_keeps_it_with_its_partition(home: Path, runner: Runner) -> None:
    async with panel(demo()) as desk:
        await desk.choose_model("demo-qwen2.5-14b")
        await desk.set_option("name", "coder")
        spec = desk.panel.state.draft.spec(desk.panel.state.program)
        spec = replace(spec, placement=Placement(((0,), (1,))), layer_partition=(14, 34))
        runner.install(spec)
        await desk.is_("coder", "stopped")
        await desk.choose_model(LLAMA)
        await desk.press("2", "backspace")
        await select(desk, "coder")
        await desk.press("enter")
        await desk.until(lambda: desk.panel.state.draft.name == "coder", "its plan")
        assert desk.panel.state.draft.spec(desk.panel.state.program) == spec


async def test_a_second_engine_gets_a_port_of_its_own(home: Path, runner: Runner, tmp_path: Path) -> None:
    small(tmp_path / "a", "first", runner, port=8000)
    small(tmp_path / "b", "second", runner, port=8001)
    async with panel(demo()) as desk:
        await desk.is_("second", "stopped")
        await desk.choose_model(LLAMA)
        assert desk.panel.state.draft.options.port == 8002
        await desk.press("a")
        await desk.sees("--port")
        await desk.press("tab", "tab", "ctrl+u")
        await desk.paste("8001")
        await desk.sees("second's already")


async def test_an_engine_whose_model_is_gone_shows_its_cards(home: Path, runner: Runner, tmp_path: Path) -> None:
    small(tmp_path / "a", "orphan", runner)
    (tmp_path / "a" / "model").rmdir()
    async with panel(demo()) as desk:
        await select(desk, "orphan")
        await desk.press("s")
        await desk.hears(f"The model {tmp_path}/a/model is not there: mount it, or choose another with m.")
        assert desk.word("orphan") == "stopped"
        desk.panel.clear_notifications()
        await desk.press("enter")
        await desk.hears("model is not there")
        assert desk.panel.state.draft.placement.stages == ((0,),)
        assert desk.panel.state.draft.model is None


async def test_remove_asks_and_removes(home: Path, runner: Runner, tmp_path: Path) -> None:
    small(tmp_path / "a", "gone", runner)
    runner.start("gone")
    async with panel(demo()) as desk:
        await select(desk, "gone")
        await desk.press("D")
        await desk.sees("stops the running engine")
        await desk.press("n")
        await desk.until(lambda: desk.panel.screen is desk.panel.deck, "dialog gone")
        assert runner.engines()
        await desk.press("D")
        await desk.sees("remove gone")
        await desk.press("y")
        await desk.is_("gone", "gone")
        await desk.hears("gone is removed.")
        assert runner.engines() == ()


async def test_leaving_leaves_engines_and_a_demo_asks(home: Path, runner: Runner, tmp_path: Path) -> None:
    small(tmp_path / "a", "stays", runner)
    runner.start("stays")
    async with panel(demo(), COMPACT) as desk:
        await desk.is_("stays", "starting")
        await desk.press("q")
        await desk.until(lambda: isinstance(desk.panel.screen, Confirm), "question")
        await desk.sees("stays still runs")
        await desk.press("escape")  # back to the panel
        await desk.until(lambda: desk.panel.screen is desk.panel.deck, "dialog gone")
        await desk.press("ctrl+q")
        await desk.until(lambda: isinstance(desk.panel.screen, Confirm), "question")
        await desk.press("n")
        await desk.until(lambda: desk.panel._exit, "end")
    assert [state.active for state in runner.engines()] == ["active"]
    async with panel(demo()) as desk:
        await desk.is_("stays", "starting")
        await desk.press("q")
        await desk.sees("remove with the demo")
        await desk.press("y")
        await desk.until(lambda: desk.panel._exit, "end")
    assert runner.engines() == ()


async def test_stopped_engines_of_a_demo_go_without_a_question(home: Path, runner: Runner, tmp_path: Path) -> None:
    small(tmp_path / "a", "idle", runner)
    async with panel(demo()) as desk:
        await desk.is_("idle", "stopped")
        await desk.press("q")
        await desk.until(lambda: desk.panel._exit, "end")
    assert runner.engines() == ()


async def test_an_engine_started_by_another_gpudeck_appears(home: Path, runner: Runner, tmp_path: Path) -> None:
    async with panel(demo()) as desk:
        small(tmp_path / "a", "theirs", runner)
        await desk.is_("theirs", "stopped")
        runner.start("theirs")
        await desk.is_("theirs", "starting")
        await desk.sees("up")
        runner.remove("theirs")
        await desk.is_("theirs", "gone")


async def test_the_panel_on_real_engines_leaves_without_a_question(home: Path, tmp_path: Path) -> None:
    runner = choose.open_runner()
    small(tmp_path / "a", "real", runner)
    runner.start("real")
    async with panel(replace(demo(), demo=False, open_runner=choose.open_runner)) as desk:
        await desk.is_("real", "starting")
        await desk.press("q")
        await desk.until(lambda: desk.panel._exit, "end")
    until("it is stopped", lambda: [state.active for state in runner.engines()] == ["active"])
