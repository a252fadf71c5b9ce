"""start, stop, restart, status and logs over their edges, with the embedded runner."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from gpudeck.services.engine import choose
from gpudeck.services.engine.types import Runner, Scope, UnitState
from gpudeck.services.plan.types import EngineOptions
from tests.rigs.as_command import EMBEDDED, Gpudeck
from tests.rigs.at_the_panel import free_port
from tests.rigs.small_engines import engine, until

SLEEPS = "echo up; exec sleep 1000"


@pytest.fixture
def runner(home: Path) -> Runner:
    return choose.open_runner(demo=True)


def installed(runner: Runner, folder: Path, name: str, script: str = SLEEPS, port: int | None = None) -> None:
    runner.install(engine(folder, name, script, options=EngineOptions(port=port or free_port())))


@contextmanager
def waiting_start(runner: Runner, name: str) -> Iterator["subprocess.Popen[str]"]:
    """`gpudeck start` in a process of its own, which has begun to wait."""
    with subprocess.Popen(
        [*EMBEDDED, "start", name, "--demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert readable(child.stdout).readline().endswith("starting\n")
        yield child


def readable(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def test_a_start_says_that_it_was_stopped_meanwhile(runner: Runner, tmp_path: Path) -> None:
    installed(runner, tmp_path, "halted")
    with waiting_start(runner, "halted") as child:
        runner.stop("halted")
        assert child.wait(30) == 1
        said = readable(child.stderr).read()
    assert said == "gpudeck: halted was stopped meanwhile: `gpudeck start halted --demo` starts it again.\n"


def test_a_start_says_that_it_was_removed_meanwhile(runner: Runner, tmp_path: Path) -> None:
    installed(runner, tmp_path, "taken-away")
    with waiting_start(runner, "taken-away") as child:
        runner.remove("taken-away")
        assert child.wait(30) == 1
        assert "taken-away was " in (said := readable(child.stderr).read())
    assert "removed meanwhile" in said or "stopped meanwhile" in said  # whichever was looked at


def test_ctrl_c_leaves_the_engine_and_says_how_to_go_on(runner: Runner, tmp_path: Path) -> None:
    installed(runner, tmp_path, "goes-on")
    with waiting_start(runner, "goes-on") as child:
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
        said = readable(child.stderr).read()
    assert said == (
        "\ngoes-on goes on starting: `gpudeck logs -f goes-on --demo` follows it, "
        "`gpudeck stop goes-on --demo` ends it.\n"
    )
    state = runner.state("goes-on")
    assert state is not None
    assert state.active == "active"


def test_a_restart_is_refused_where_another_has_the_port(gpudeck: Gpudeck, runner: Runner, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        installed(runner, tmp_path, "again", port=taken.getsockname()[1])
        runner.start("again")
        before = runner.state("again")
        done = gpudeck("restart", "again", "--demo")
        assert done.refused
        assert "is already used by" in done.err
        assert runner.state("again") == before  # and it still runs


def test_a_start_that_would_collide_is_refused_before_anything_is_asked(
    gpudeck: Gpudeck, runner: Runner, tmp_path: Path
) -> None:
    installed(runner, tmp_path, "first")
    installed(runner, tmp_path, "second")
    runner.start("first")
    done = gpudeck("start", "second", "--demo", "--no-wait")
    assert done.refused
    assert done.err.startswith("gpudeck: GPU 0 belongs to first, which runs: stop that first, or plan second on other")
    state = runner.state("second")
    assert state is not None
    assert state.since is None
    assert gpudeck("start", "second", "--demo", "--no-wait", "--force").code == 0
    runner.stop("first")
    assert gpudeck("restart", "second", "--demo", "--no-wait").code == 0


def test_a_restart_is_not_refused_for_the_engines_own_port(gpudeck: Gpudeck, runner: Runner, tmp_path: Path) -> None:
    port = free_port()
    script = f"exec /usr/bin/python3 -m http.server --bind 127.0.0.1 {port}"
    installed(runner, tmp_path, "serves", script, port)
    runner.start("serves")
    until("it does not listen", lambda: listens(port))
    assert gpudeck("restart", "serves", "--demo", "--no-wait").code == 0


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_log_of_what_never_ran_is_one_sentence(gpudeck: Gpudeck, runner: Runner, tmp_path: Path) -> None:
    installed(runner, tmp_path, "quiet", "exec sleep 1000")
    done = gpudeck("logs", "quiet", "--demo")
    assert (done.code, done.out) == (0, "")
    assert done.err == "quiet has no log here: it was never started, or what it said is no longer kept.\n"
    runner.start("quiet")
    assert gpudeck("logs", "quiet", "--demo").err == "quiet has said nothing yet.\n"
    assert gpudeck("logs", "quiet", "--demo", "-n", "0").err == ""


@pytest.mark.parametrize("last", [(), ("-n", "3")])
def test_following_repeats_nothing_of_the_history(runner: Runner, tmp_path: Path, last: tuple[str, ...]) -> None:
    go = tmp_path / "go"
    script = f"for i in 1 2 3 4 5; do echo line $i; done; while ! [ -e {go} ]; do sleep 0.05; done; echo then; {SLEEPS}"
    installed(runner, tmp_path, "seam", script)
    runner.start("seam")
    until("it says nothing", lambda: len(runner.history("seam")) == 5)
    with subprocess.Popen(
        [*EMBEDDED, "logs", "-f", "seam", "--demo", *last], stdout=subprocess.PIPE, text=True
    ) as child:
        out = readable(child.stdout)
        first = 3 if last else 1
        assert [out.readline() for _ in range(first, 6)] == [f"line {number}\n" for number in range(first, 6)]
        go.touch()
        assert [out.readline(), out.readline()] == ["then\n", "up\n"]
        child.terminate()


def test_earlier_starts_are_listed_and_shown_one_by_one(gpudeck: Gpudeck, runner: Runner, tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = f"echo x >> {count}; echo begun; wc -l < {count}; [ $(wc -l < {count}) = 2 ] || exit 3; exec sleep 1000"
    installed(runner, tmp_path, "again", script)
    assert "again has no log here" in gpudeck("logs", "again", "--starts", "--demo").err
    runner.start("again")
    until("it does not end", lambda: runner.starts("again")[0].failed)
    runner.start("again")
    until("it says nothing", lambda: [line.text for line in runner.history("again")][-1:] == ["2"])
    listed = gpudeck("logs", "again", "--starts", "--demo").out.splitlines()
    assert [line.split("  ")[-1] for line in listed] == ["runs now", "ended with exit status 3"]
    assert [line.split()[0] for line in listed] == ["1", "2"]
    assert gpudeck("logs", "again", "--start", "2", "--demo").out == "begun\n1\n"
    assert gpudeck("logs", "again", "--start", "1", "-n", "1", "--demo").out == "2\n"
    assert gpudeck("logs", "again", "--start", "1", "-n", "0", "--demo").out == ""
    done = gpudeck("logs", "again", "--start", "3", "--demo")
    assert (done.code, done.out) == (1, "")
    assert "The log of again holds 2 starts" in done.err
    assert gpudeck("logs", "again", "--start", "1", "-f", "--demo").code == 2


def test_a_signal_is_told_by_its_name(gpudeck: Gpudeck, runner: Runner, tmp_path: Path) -> None:
    installed(runner, tmp_path, "killed", "kill -9 $$")
    done = gpudeck("start", "killed", "--demo")
    assert "killed ended with SIGKILL (exit status 137) before it was ready" in done.err
    assert "last ended with SIGKILL (exit status 137)" in gpudeck("status", "killed", "--demo").out


class Waiting:
    """A runner with one engine between two tries, which only systemd has; tests/systemd has the real one."""

    scope = Scope.SYSTEM

    def __init__(self, state: UnitState) -> None:
        self._state = state

    def engines(self) -> tuple[UnitState, ...]:
        return (self._state,)

    def history(self, name: str, lines: int | None = None) -> list[object]:
        return []

    def drift(self, name: str) -> tuple[object, ...]:
        return ()

    def schedule(self, name: str) -> None:
        return None

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (
            UnitState("x", "x.service", Scope.SYSTEM, True, "activating", "auto-restart", retry_at=0.0, restarts=2),
            "systemd tries again in a moment, after 3 crashes; `gpudeck stop x` ends that.",
        ),
        (
            UnitState("x", "x.service", Scope.SYSTEM, True, "failed", "failed", restarts=5, gave_up=True),
            "systemd starts it no more after so many crashes: mend it, then `gpudeck start x`.",
        ),
    ],
)
def test_status_of_a_crash_loop_is_3_and_says_the_way_out(
    gpudeck: Gpudeck, monkeypatch: pytest.MonkeyPatch, state: UnitState, said: str
) -> None:
    monkeypatch.setattr(choose, "open_runner", lambda **_: Waiting(state))
    done = gpudeck("status", "x")
    assert done.code == 3
    assert f"  next    {said}\n" in done.out
