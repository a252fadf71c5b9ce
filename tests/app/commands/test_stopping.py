"""Requests in flight before a stop, and Ctrl-C in the midst of one."""

import signal
import subprocess
from pathlib import Path
from typing import IO

import pytest

from gpudeck.services.engine import choose
from gpudeck.services.engine.types import Runner
from gpudeck.services.plan.types import EngineOptions
from tests.rigs.as_command import EMBEDDED, Gpudeck
from tests.rigs.at_the_panel import free_port
from tests.rigs.counting_engine import CountingEngine
from tests.rigs.small_engines import engine, until

NO_MORE = "New ones still come in meanwhile: gpudeck can not turn them away."
STOPPED = "counts is stopped; none of its processes is left.\n"


@pytest.fixture
def runner(home: Path) -> Runner:
    return choose.open_runner(demo=True)


@pytest.fixture
def counts(gpudeck: Gpudeck, runner: Runner, tmp_path: Path) -> CountingEngine:
    """An engine that is ready, with as many requests in flight as the test says."""
    counting = CountingEngine(tmp_path, "counts", free_port())
    runner.install(counting.spec)
    assert gpudeck("start", "counts", "--demo").code == 0
    return counting


def stopping(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*EMBEDDED, *words, "--demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def read(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def test_a_stop_says_which_requests_end_with_it(gpudeck: Gpudeck, counts: CountingEngine) -> None:
    counts.has(2, 1)
    done = gpudeck("stop", "counts", "--demo")
    told = "2 requests run and 1 waits: what is unfinished ends with counts; --drain waits for it.\n"
    assert (done.code, done.out) == (0, told + STOPPED)


@pytest.mark.usefixtures("counts")
@pytest.mark.parametrize("drain", [(), ("--drain",)])
def test_a_stop_of_an_idle_engine_says_nothing_of_requests(gpudeck: Gpudeck, drain: tuple[str, ...]) -> None:
    assert gpudeck("stop", "counts", "--demo", *drain).out == STOPPED


def test_a_drain_waits_for_the_last_request(counts: CountingEngine) -> None:
    counts.has(1)
    with stopping("stop", "counts", "--drain", "60") as child:
        out = read(child.stdout)
        assert out.readline() == f"1 request runs; waiting until none is left, at most 60 s. {NO_MORE}\n"
        assert out.readline() == "  1 request runs\n"
        counts.has(0, 1)
        assert out.readline() == "  1 request waits\n"
        counts.has(0)
        assert out.readline() == "  no request is in flight\n"
        assert out.readline() == STOPPED
        assert child.wait(30) == 0


def test_a_drain_ends_at_its_deadline(gpudeck: Gpudeck, counts: CountingEngine) -> None:
    counts.has(1)
    done = gpudeck("stop", "counts", "--demo", "--drain", "1")
    assert done.out.endswith(f"After 1 s 1 request runs still: what is unfinished ends now.\n{STOPPED}")


def test_ctrl_c_while_it_drains_stops_nothing(counts: CountingEngine, runner: Runner) -> None:
    counts.has(1)
    before = runner.state("counts")
    with stopping("restart", "counts", "--drain") as child:
        assert " at most 300 s." in read(child.stdout).readline()
        assert read(child.stdout).readline() == "  1 request runs\n"
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
        assert read(child.stderr).read() == "\nNothing was stopped: counts goes on serving.\n"
    assert runner.state("counts") == before


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (
            "restart",
            "deaf was told to stop, and is not started again: `gpudeck start deaf --demo` does that.",
        ),
        ("stop", "It was told to stop: `gpudeck status deaf --demo` shows whether it has ended."),
    ],
)
def test_ctrl_c_during_the_stop_says_what_that_leaves(runner: Runner, tmp_path: Path, act: str, sentence: str) -> None:
    go = tmp_path / "go"
    script = f"trap '' TERM; echo up; while ! [ -e {go} ]; do sleep 0.1; done"
    runner.install(engine(tmp_path, "deaf", script, options=EngineOptions(port=free_port())))
    runner.start("deaf")
    until("it says nothing", lambda: runner.history("deaf"))
    with stopping(act, "deaf") as child:
        until("it is not told to stop", lambda: (state := runner.state("deaf")) and state.active == "deactivating")
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
        assert read(child.stderr).read() == f"\n{sentence}\n"
    go.touch()
