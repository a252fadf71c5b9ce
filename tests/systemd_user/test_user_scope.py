"""A plain user's engines under the user's own systemd."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudeck.services.engine.choose import open_runner
from gpudeck.services.engine.systemd import bus as bus_module
from gpudeck.services.engine.systemd import lingering
from gpudeck.services.engine.systemd.beside import Beside
from gpudeck.services.engine.systemd.bus import address_of
from gpudeck.services.engine.systemd.errors import NoBusError
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.engine.types import LogLine, Runner, Scope
from gpudeck.services.errors import OperatorError
from tests.rigs.small_engines import Heard, Lines, engine, inside_systemd, until

pytestmark = [*inside_systemd, pytest.mark.skipif(os.getuid() == 0, reason="run it as a plain user")]


@pytest.fixture
def runner() -> Iterator[Runner]:
    runner = open_runner()
    assert isinstance(runner, Beside)
    yield runner
    for state in runner.engines():
        if state.managed:
            runner.remove(state.name)
    runner.close()


def test_the_whole_road(runner: Runner, tmp_path: Path) -> None:
    assert (runner.scope, runner.description) == (Scope.USER, "systemd (user)")
    spec = engine(tmp_path, "mine", "echo up; exec sleep 1000")
    heard, lines = Heard(), Lines()
    runner.watch(heard)
    runner.install(spec, enable=True)
    unit = Path.home() / ".config/systemd/user/vllm-mine.service"
    assert unit.read_text() == runner.preview(spec).text
    assert "WantedBy=default.target" in unit.read_text()
    assert _systemctl("is-enabled", "vllm-mine") == "enabled"
    follower = runner.follow("mine", lines)
    follower.start()
    runner.start("mine")
    until("its log does not arrive", lambda: "up" in lines.texts)
    running = until("no word of it running", lambda: [s for s in heard.of("mine") if s.active == "active"])[-1]
    assert (running.scope, running.spec) == (Scope.USER, spec)
    assert str(running.main_pid) == _systemctl("show", "-P", "MainPID", "vllm-mine")
    runner.restart("mine")
    until("the second run says nothing", lambda: lines.texts.count("up") == 2)
    runner.stop("mine")
    until("no word of the end", lambda: heard.states[-1].active == "inactive")
    follower.stop()
    assert [line.text for line in runner.history("mine")].count("up") == 2
    runner.remove("mine")
    assert not unit.exists()
    assert not [path for path in unit.parent.rglob("*") if path.name == unit.name]


def test_earlier_starts_have_their_ends_and_their_logs(runner: Runner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "twice", "echo run-$$; exec sleep 1000"))
    for number in (1, 2):
        (runner.start if number == 1 else runner.restart)("twice")
        until("it says nothing", lambda number=number: len(_runs(runner.history("twice"))) == number)  # type: ignore[misc]
    until("the stop is not told", lambda: runner.starts("twice")[1].outcome == "stopped")
    present, before = runner.starts("twice")
    assert present.outcome == ""
    assert [_runs(runner.log_of("twice", start)) for start in (before, present)] == [
        [text] for text in _runs(runner.history("twice"))
    ]


def test_xdg_config_home_is_heeded_in_the_preview(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert runner.preview(engine(tmp_path, "there", "exit")).path == str(tmp_path / "systemd/user/vllm-there.service")


def test_the_bus_is_found_without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert address_of(Scope.USER) == f"unix:path=/run/user/{os.getuid()}/bus"
    SystemdRunner(Scope.USER).close()


def test_no_session_bus_is_one_sentence_with_the_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(NoBusError, match="There is no D-Bus session bus for you"):
        SystemdRunner(Scope.USER)
    with pytest.raises(OperatorError, match=r"There is no D-Bus session bus for you.* --scope embedded runs engines"):
        open_runner()
    system = open_runner(scope=Scope.SYSTEM)  # what everyone may see
    assert system.engines() == ()
    system.close()


def test_the_users_bus_restarts(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "_PATIENCE", 20.0)
    runner.install(engine(tmp_path, "through", "exec sleep 1000"))
    runner.start("through")
    subprocess.run(["systemctl", "--user", "kill", "-s", "KILL", "dbus.service"], check=True)
    state = until("it is not found again", lambda: runner.state("through"))
    assert state is not None
    assert state.active == "active"
    runner.stop("through")


def test_engines_that_end_at_logout_are_told(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "NOTES", str(tmp_path))
    assert runner.description == "systemd (user): engines end when you log out, but for loginctl enable-linger"


def _runs(lines: list[LogLine]) -> list[str]:
    return [line.text for line in lines if line.text.startswith("run-")]


def _systemctl(*words: str) -> str:
    return subprocess.run(["systemctl", "--user", *words], capture_output=True, text=True, check=False).stdout.strip()
