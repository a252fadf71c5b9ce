"""What goes wrong on a machine: one sentence with the way out each, the panel stays, and nothing is half-written."""

import argparse
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.app.panel import setup_from
from gpudeck.services.engine import choose
from gpudeck.services.engine.types import Runner
from gpudeck.services.errors import OperatorError
from tests.app.panels import COMPACT, WIDE, Desk, demo, panel, real
from tests.app.test_panel_engines import select, small
from tests.rigs.at_the_panel import free_port
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import busy, pair

pytestmark = pytest.mark.panel

LLAMA = "demo-llama-3.1-8b"


@pytest.fixture
def runner(home: Path) -> Runner:
    return choose.open_runner(demo=True)


async def works(desk: Desk) -> None:
    """The panel still answers."""
    await desk.press("f1")
    await desk.sees("Everywhere")
    await desk.press("escape")
    await desk.until(lambda: desk.panel.screen is desk.panel.deck, "help gone")


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_no_driver(home: Path, fake_nvml: FakeNvml, size: tuple[int, int]) -> None:
    fake_nvml(pair(), (), init="!DRIVER_NOT_LOADED")
    async with panel(real(), size) as desk:
        await desk.press("1")
        await desk.sees("driver")
        await desk.press("m")
        await desk.press("escape")
        await desk.press("p")
        await works(desk)
        # The driver is loaded meanwhile: the panel finds it.
        fake_nvml(pair(), (busy(0), busy(1)))
        await desk.until(lambda: desk.panel.state.snapshot, "readings")
        await desk.sees("A100")


async def test_no_systemd_is_told_with_its_reason(home: Path) -> None:
    async with panel(demo()) as desk:
        await desk.sees("embedded: ")
        await works(desk)


async def test_engines_that_can_not_be_managed(home: Path) -> None:
    def refuse() -> Runner:
        raise OperatorError("This is a recorded box: plans are judged, nothing is started.")

    async with panel(replace(demo(), open_runner=refuse)) as desk:
        await desk.hears("This is a recorded box")
        await desk.choose_model(LLAMA)
        await desk.place((1,))
        desk.panel.clear_notifications()
        await desk.press("s")
        await desk.hears("This is a recorded box")
        await works(desk)


async def test_a_home_where_nothing_can_be_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{variable}_HOME", "/sys/gpudeck")
    async with panel(demo()) as desk:
        await desk.press("m")
        await desk.hears("can not be written")
        await desk.press("escape")
        await works(desk)


async def test_an_engine_that_can_not_be_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = demo()
    monkeypatch.setenv("XDG_STATE_HOME", "/sys/gpudeck")
    async with panel(setup) as desk:
        await desk.choose_model(LLAMA)
        await desk.set_option("--port", str(free_port()))
        await desk.place((1,))
        await desk.start()
        await desk.hears("/sys/gpudeck")
        await works(desk)
        assert desk.panel.state.engines == {}


async def test_a_model_that_is_not_there_or_broken(home: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    async with panel(demo()) as desk:
        for path, said in ((tmp_path / "none", "is not there"), (broken, "✗")):
            await desk.press("m")
            await desk.sees("demo-qwen")
            await desk.paste(str(path))
            await desk.press("enter")
            await desk.sees(said)  # the picker stays, for another try
            await desk.press("escape")
        assert desk.panel.state.draft.model is None
        await works(desk)


async def test_a_port_that_is_taken_is_told_before_anything_starts(home: Path, runner: Runner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with panel(demo()) as desk:
            await desk.choose_model(LLAMA)
            await desk.set_option("--port", str(port))
            await desk.place((1,))
            await desk.start()
            await desk.hears(f"Port {port} is already used by ")
            # The operator stays where they were, and the reason with its key stays until the next act.
            assert desk.panel.deck.board.has_focus
            desk.panel.clear_notifications()
            await desk.sees("The key a changes the port.")
            await works(desk)
            await desk.sees("The key a changes the port.")
            await desk.press("v")
            await desk.sees("What will run")
            await desk.press("escape")
            await desk.until(lambda: "The key a changes" not in desk.shown, "the reason gone")
    assert runner.engines() == ()


async def test_a_unit_that_others_wrote_is_shown_and_kept(home: Path) -> None:
    theirs = home / "state" / "gpudeck" / "engines" / f"gpudeck-demo-{LLAMA}.service" / "command.json"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.set_option("name", LLAMA)
        await desk.place((1,))
        await desk.press("s")
        await desk.sees("gpudeck did not write it")
        await desk.press("enter")
        await desk.press("escape")
        await works(desk)
    assert theirs.read_text() == "theirs"
    theirs.unlink()


async def test_an_engine_that_dies_at_once(home: Path, runner: Runner, tmp_path: Path) -> None:
    small(tmp_path / "a", "dies", runner, "echo RuntimeError: no such device; exit 3")
    async with panel(demo()) as desk:
        await select(desk, "dies")
        await desk.press("s")
        await desk.is_("dies", "failed")
        await desk.hears("dies failed. It ended with exit status 3")
        # Started again it fails again, and that is told again.
        desk.panel.clear_notifications()
        await desk.press("s")
        await desk.hears("dies failed. It ended with exit status 3")
        await desk.sees("RuntimeError: no such device")
        await works(desk)


async def test_an_engine_whose_program_vanished(home: Path, runner: Runner, tmp_path: Path) -> None:
    small(tmp_path / "a", "lost", runner)
    (tmp_path / "a" / "lost.sh").unlink()
    async with panel(demo()) as desk:
        await select(desk, "lost")
        await desk.press("s")
        await desk.hears("lost.sh")
        await works(desk)


async def test_a_damaged_engine_directory(home: Path, runner: Runner, tmp_path: Path) -> None:
    small(tmp_path / "a", "hurt", runner)
    folder = home / "state" / "gpudeck" / "engines" / "gpudeck-demo-hurt.service"
    (folder / "spec.json").write_text("{")
    async with panel(demo()) as desk:
        await select(desk, "hurt")
        await desk.press("enter", "s", "x", "R", "escape", "D", "escape")
        await works(desk)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"gpus": []}', '{"gpu": 1}'])
def test_a_broken_box_file_is_told_before_the_screen_is_taken(home: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "box.json"
    path.write_text(text)
    with pytest.raises(OperatorError, match=r"box\.json"):
        setup_from(argparse.Namespace(demo=None, box_file=str(path), scope=None), ascii_only=False)


async def test_a_terminal_that_becomes_tiny_and_large_again(home: Path, runner: Runner, tmp_path: Path) -> None:
    small(tmp_path / "a", "runs", runner)
    runner.start("runs")
    async with panel(demo(), COMPACT) as desk:
        await desk.choose_model(LLAMA)
        await desk.place((1,))
        for pane in "12345":
            for size in ((20, 5), (1, 1), (120, 30), (80, 24)):
                await desk.pilot.resize_terminal(*size)
            await desk.press(pane, "escape")
        for key in ("m", "a", "v", "x", "f1"):
            await desk.press(key)
            await desk.until(lambda: desk.panel.screen is not desk.panel.deck, f"dialog of {key}")
            for size in ((20, 5), (1, 1), (80, 24)):
                await desk.pilot.resize_terminal(*size)
            await desk.press("escape")
            await desk.until(lambda: desk.panel.screen is desk.panel.deck, "dialog gone")
        await works(desk)
