"""What others do meanwhile, and what an operator breaks off, under a booted systemd."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineOptions
from tests.rigs.at_the_panel import GPUDECK, free_port
from tests.rigs.small_engines import engine, inside_systemd, until
from tests.rigs.terminal import Terminal

pytestmark = [*inside_systemd, pytest.mark.timeout(120)]

UNITS = Path("/etc/systemd/system")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "GPUDECK_MODELS": str(tmp_path)}


def state_of(runner: SystemdRunner, name: str) -> str:
    state = runner.state(name)
    return state.active if state is not None else "gone"


def test_ctrl_c_during_a_restarts_stop_says_that_systemd_goes_on(
    runner: SystemdRunner, tmp_path: Path, home: dict[str, str]
) -> None:
    go = tmp_path / "go"
    script = f"trap '' TERM; while ! [ -e {go} ]; do sleep 0.1; done"
    runner.install(engine(tmp_path, "deaf", script, options=EngineOptions(port=free_port())))
    runner.start("deaf")
    with subprocess.Popen(
        [*GPUDECK, "restart", "deaf"], stderr=subprocess.PIPE, text=True, env={**os.environ, **home}
    ) as child:
        until("it is not being stopped", lambda: state_of(runner, "deaf") == "deactivating")
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
        assert child.stderr is not None
        told = child.stderr.read()
    assert told == "\nsystemd goes on restarting deaf: `gpudeck status deaf` shows how far it is.\n"
    # And so it does.
    assert state_of(runner, "deaf") == "deactivating"
    go.touch()
    until("it is not started again", lambda: state_of(runner, "deaf") in ("active", "activating"))


def test_what_another_changed_meanwhile_is_not_written_over(runner: SystemdRunner, tmp_path: Path) -> None:
    spec = engine(tmp_path, "shared", "exec sleep 1000", options=EngineOptions(port=free_port()))
    shown = runner.preview(spec)
    runner.install(engine(tmp_path, "shared", "exec sleep 1000", options=EngineOptions(port=free_port())))
    other = (UNITS / "vllm-shared.service").read_text()
    with pytest.raises(OperatorError, match=r"vllm-shared.service was changed meanwhile"):
        runner.install(spec, shown=shown)
    assert (UNITS / "vllm-shared.service").read_text() == other


@pytest.mark.terminal
def test_a_panel_that_was_opened_while_the_bus_was_dead_finds_it_later(home: dict[str, str]) -> None:
    bus = ("dbus.socket", "dbus.service")
    subprocess.run(["systemctl", "stop", *bus], check=True)
    try:
        with Terminal([*GPUDECK, "--demo", "--scope", "system"], env=home) as terminal:
            terminal.wait_for("no engines")
            subprocess.run(["systemctl", "start", *bus], check=True)
            terminal.wait_for("systemd (system)", 60)
            terminal.press("q")
            assert terminal.wait_end() == 0
    finally:
        subprocess.run(["systemctl", "start", *bus], check=True)
