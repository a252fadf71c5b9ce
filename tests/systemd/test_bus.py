"""The bus restarts, systemd re-executes itself, nobody answers: the runner says so and goes on."""

import gc
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from gpudeck.services.engine.systemd import bus as bus_module
from gpudeck.services.engine.systemd import connection as connection_module
from gpudeck.services.engine.systemd.errors import BusLostError, NoAnswerError, NoBusError
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError
from tests.rigs.at_the_panel import GPUDECK
from tests.rigs.small_engines import Heard, engine, inside_systemd, until

pytestmark = inside_systemd
SLEEPS = "exec sleep 1000"
_ROUNDS = 200


@pytest.mark.parametrize("how", [("restart", "dbus.service"), ("kill", "-s", "KILL", "dbus.service")])
def test_the_bus_restarts(runner: SystemdRunner, tmp_path: Path, how: tuple[str, ...]) -> None:
    runner.install(engine(tmp_path, "through", SLEEPS))
    runner.start("through")
    heard = Heard()
    runner.watch(heard)
    subprocess.run(["systemctl", *how], check=True)
    told = until("no state is told after the bus came back", lambda: heard.last("through"))
    assert told is not None
    assert told.active == "active"
    assert runner.description == "systemd (system)"
    runner.stop("through")
    until("no signals after the bus came back", lambda: (heard.last("through") or told).active == "inactive")


def test_a_start_that_the_bus_dies_under_is_still_judged(runner: SystemdRunner, tmp_path: Path) -> None:
    """The job goes on without the bus; its result is never told, and is read from the unit's state instead."""
    unit = Path("/etc/systemd/system/vllm-slow.service")
    unit.write_text("[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sleep 2\n")
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    failures: list[OperatorError] = []

    def start() -> None:
        try:
            runner.start("slow")
        except OperatorError as error:
            failures.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    until("the start does not begin", lambda: "activating" in _active("vllm-slow.service"))
    subprocess.run(["systemctl", "kill", "-s", "KILL", "dbus.service"], check=True)
    thread.join(20)
    assert not thread.is_alive()
    assert failures == []
    assert _active("vllm-slow.service") == "active"
    runner.stop("slow")
    unit.unlink()


def test_a_bus_that_stays_away_is_told(runner: SystemdRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "_PATIENCE", 0.2)
    subprocess.run(["systemctl", "mask", "--runtime", "dbus.service", "dbus.socket"], check=True)
    try:
        subprocess.run(["systemctl", "stop", "dbus.socket", "dbus.service"], check=True)
        until("the loss is not noticed", lambda: "went away" in runner.description)
        with pytest.raises(BusLostError, match="D-Bus went away and is not back yet"):
            runner.engines()
        with pytest.raises(NoBusError, match="systemd can not be reached over the system bus"):
            SystemdRunner(Scope.SYSTEM)
        # Its engines may run: those of an embedded runner beside them would be lost from sight once the bus is back.
        done = subprocess.run([*GPUDECK, "engines"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert "systemd can not be reached over the system bus" in done.stderr
        assert "--scope embedded runs engines as processes of gpudeck's own" in done.stderr
    finally:
        subprocess.run(["systemctl", "unmask", "--runtime", "dbus.service", "dbus.socket"], check=True)
        subprocess.run(["systemctl", "start", "dbus.socket", "dbus.service"], check=True)
    until("the runner does not come back", lambda: runner.description == "systemd (system)")
    assert runner.engines() == ()


def test_systemd_re_executes(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "again", SLEEPS))
    runner.start("again")
    heard = Heard()
    runner.watch(heard)
    subprocess.run(["systemctl", "daemon-reexec"], check=True)
    state = runner.state("again")
    assert state is not None
    assert state.active == "active"
    runner.stop("again")
    until("no signals after re-execution", lambda: heard.last("again") and heard.states[-1].active == "inactive")
    runner.start("again")


def test_a_bus_that_says_nothing_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen dbus-daemon: its socket accepts, and no word comes."""
    monkeypatch.setattr(connection_module, "_CONNECT_SECONDS", 0.5)
    path = tmp_path / "bus"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={path}")
        with pytest.raises(NoAnswerError, match="D-Bus does not answer"):
            SystemdRunner(Scope.SYSTEM)


def test_two_hundred_rounds_lose_nothing_and_leak_nothing(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "round", SLEEPS))
    heard = Heard()
    runner.watch(heard)

    def once() -> None:
        runner.start("round")
        runner.stop("round")

    for _ in range(5):  # what is kept for good is made now
        once()
    descriptors, threads = _descriptors(), threading.active_count()
    memory = _resident()
    heard.states.clear()
    for _ in range(_ROUNDS):
        once()
    until("the last stop is not told", lambda: heard.active("round").count("inactive") == _ROUNDS)
    steady = [state for state in heard.active("round") if state not in ("activating", "deactivating")]
    assert steady == ["active", "inactive"] * _ROUNDS
    assert _descriptors() <= descriptors
    assert threading.active_count() <= threads
    assert _resident() - memory < 8 << 20


def test_closing_leaves_no_thread_and_no_descriptor(runner: SystemdRunner) -> None:
    def cycle() -> tuple[int, int]:
        other = SystemdRunner(Scope.SYSTEM)
        other.engines()
        other.close()
        return _descriptors(), threading.active_count()

    descriptors, threads = cycle()
    for _ in range(10):
        cycle()
    # GLib's own thread closes the socket a moment later.
    until("descriptors are left", lambda: _descriptors() <= descriptors)
    assert threading.active_count() <= threads


def _active(unit: str) -> str:
    return subprocess.run(["systemctl", "is-active", unit], capture_output=True, text=True, check=False).stdout.strip()


def _descriptors() -> int:
    gc.collect()  # GLib's objects go with their last reference
    return len(list(Path("/proc/self/fd").iterdir()))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
