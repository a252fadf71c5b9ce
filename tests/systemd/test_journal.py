"""Logs of real units through the real journal."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.engine.types import LogLine
from tests.rigs.small_engines import Lines, engine, inside_systemd, processes, until

pytestmark = inside_systemd


def test_the_first_burst_arrives_whole(runner: SystemdRunner, tmp_path: Path) -> None:
    """`journalctl -f -n0` would lose all but its last line."""
    for round_ in range(3):
        name = f"burst{round_}"
        runner.install(engine(tmp_path, name, "for i in $(seq 200); do echo line $i; done; exec sleep 1000"))
        lines = Lines()
        follower = runner.follow(name, lines)
        follower.start()
        runner.start(name)
        until("the last line does not arrive", lambda lines=lines: "line 200" in lines.texts)  # type: ignore[misc]
        follower.stop()
        assert [text for text in lines.texts if text.startswith("line ")] == [f"line {n}" for n in range(1, 201)]


def test_following_begins_with_the_present_run_or_where_it_is_told(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "runs", "date +run-%N; exec sleep 1000"))
    runner.start("runs")
    until("the first run says nothing", lambda: _runs(runner.history("runs")))
    runner.restart("runs")
    until("no second run", lambda: len(_runs(runner.history("runs"))) == 2)
    first, second = _runs(runner.history("runs"))
    lines = Lines()
    follower = runner.follow("runs", lines)
    follower.start()
    until("the present run is not told", lambda: second in lines.texts)
    follower.stop()
    assert first not in lines.texts
    everything = Lines()
    follower = runner.follow("runs", everything, since=0.0)
    follower.start()
    until("the earlier run is not told", lambda: _runs(everything.lines) == [first, second])
    follower.stop()


def test_history_is_whole_or_the_last_lines(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "past", "for i in $(seq 50); do echo line $i; done; exec sleep 1000"))
    runner.start("past")
    until("the last line is not kept", lambda: any(line.text == "line 50" for line in runner.history("past")))
    whole = runner.history("past")
    assert [line.text for line in whole if line.text.startswith("line ")] == [f"line {n}" for n in range(1, 51)]
    assert runner.history("past", 3) == whole[-3:]
    assert runner.history("past", 0) == []
    line = runner.history("past", 1)[0]
    assert line.at is not None
    assert line.pid is not None
    assert (line.priority, line.cursor is not None) == (6, True)
    assert runner.history("nothing") == []


def test_odd_lines_arrive_as_they_were(runner: SystemdRunner, tmp_path: Path) -> None:
    script = r"""
printf '\033[32mINFO\033[0m green\n'
printf 'Loading: 10%%\rLoading: 100%%\n'
printf 'caf\351\n'
head -c 20000 /dev/zero | tr '\0' x; echo
printf 'größe [bold]not markup[/bold]\n'
echo end
exec sleep 1000"""
    runner.install(engine(tmp_path, "odd", script))
    lines = Lines()
    follower = runner.follow("odd", lines)
    follower.start()
    runner.start("odd")
    until("the end does not arrive", lambda: "end" in lines.texts)
    follower.stop()
    assert "\x1b[32mINFO\x1b[0m green" in lines.texts
    assert "Loading: 10%\rLoading: 100%" in lines.texts
    assert "caf\ufffd" in lines.texts
    assert "x" * 20000 in lines.texts
    assert "größe [bold]not markup[/bold]" in lines.texts


def test_a_restart_goes_on_in_the_same_follower(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "goes-on", "echo hello; exec sleep 1000"))
    lines = Lines()
    follower = runner.follow("goes-on", lines)
    follower.start()
    runner.start("goes-on")
    until("the first run says nothing", lambda: lines.texts.count("hello") == 1)
    runner.restart("goes-on")
    until("the second run says nothing", lambda: lines.texts.count("hello") == 2)
    follower.stop()


@pytest.mark.parametrize("what", ["journalctl killed", "journald restarted", "journal rotated and vacuumed"])
def test_nothing_is_lost_or_told_twice(runner: SystemdRunner, tmp_path: Path, what: str) -> None:
    script = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo line $i; sleep 0.01; done; exec sleep 1000"
    runner.install(engine(tmp_path, "steady", script))
    lines = Lines()
    follower = runner.follow("steady", lines)
    follower.start()
    runner.start("steady")
    until("it does not begin", lambda: "line 20" in lines.texts)
    if what == "journalctl killed":
        (child,) = processes("journalctl")
        os.kill(child, signal.SIGKILL)
    elif what == "journald restarted":
        subprocess.run(["systemctl", "restart", "systemd-journald"], check=True)
    else:
        subprocess.run(["journalctl", "-q", "--rotate", "--vacuum-size=1"], check=True, capture_output=True)
    until("the last line does not arrive", lambda: "line 300" in lines.texts)
    follower.stop()
    numbers = [text for text in lines.texts if text.startswith("line ")]
    assert numbers == [f"line {number}" for number in range(1, 301)]
    notices = [text for text in lines.texts if text.startswith("gpudeck: ")]
    assert len(notices) == (1 if what == "journalctl killed" else 0)
    runner.remove("steady")


def test_twenty_thousand_lines_at_once(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "many", "seq -f 'line %.0f' 20000; exec sleep 1000"))
    lines = Lines()
    follower = runner.follow("many", lines)
    follower.start()
    runner.start("many")
    until("the last line does not arrive", lambda: "line 20000" in lines.texts[-50:], seconds=60)
    follower.stop()
    assert [text for text in lines.texts if text.startswith("line ")] == [f"line {n}" for n in range(1, 20001)]


def _runs(lines: Sequence[LogLine]) -> list[str]:
    return [line.text for line in lines if line.text.startswith("run-")]
