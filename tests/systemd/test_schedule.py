"""Restarts by the clock, by real timers."""

import subprocess
from pathlib import Path

import pytest

from gpudeck.app.cli import run
from gpudeck.services.adoption.on_box import find_others
from gpudeck.services.engine.systemd.calendar import check_calendar
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.errors import OperatorError
from tests.rigs.small_engines import Heard, engine, inside_systemd, until

pytestmark = inside_systemd
SYSTEM = Path("/etc/systemd/system")
TIMER, SERVICE = "gpudeck-restart-vllm-clocked.timer", "gpudeck-restart-vllm-clocked.service"


def pid(runner: SystemdRunner) -> int | None:
    state = runner.state("clocked")
    return state.main_pid if state is not None else None


def systemctl(*words: str) -> str:
    return subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False).stdout.strip()


def test_the_clock_restarts_what_runs_and_leaves_the_rest(runner: SystemdRunner, tmp_path: Path) -> None:
    heard = Heard()
    runner.watch(heard)
    runner.install(engine(tmp_path, "clocked", "exec sleep 1000"))
    runner.start("clocked")
    first = pid(runner)
    schedule = runner.set_schedule("clocked", "*:*:0/2")
    assert schedule is not None
    assert schedule.next_at is not None
    until("it is not restarted", lambda: pid(runner) not in (None, first), 30)
    until("nobody was told", lambda: [state for state in heard.of("clocked") if state.restarted_on == "*:*:0/2"])
    # More restarts than systemd's start limit lets by: none of them counts.
    seen = {first}

    def often() -> bool:
        seen.add(pid(runner))
        return len(seen - {None}) > 7

    until("it is restarted no more", often, 40)
    runner.stop("clocked")
    fired = systemctl("show", "-P", "LastTriggerUSec", TIMER)
    until("the timer ended", lambda: systemctl("show", "-P", "LastTriggerUSec", TIMER) != fired, 30)
    until("its service runs still", lambda: systemctl("is-active", SERVICE) == "inactive")
    assert systemctl("is-active", "vllm-clocked") == "inactive"
    # Another time replaces it, and the timer counts by the new one at once.
    later = runner.set_schedule("clocked", "Sun 04:00")
    assert later == runner.schedule("clocked")
    assert later is not None
    assert later.when == "Sun 04:00"
    assert [state.name for state in runner.engines()] == ["clocked"]  # its own units are no engines
    assert find_others(runner) == []
    assert systemctl("is-enabled", TIMER) == "enabled"
    runner.remove("clocked")
    assert not list(SYSTEM.rglob("gpudeck-restart-*"))
    assert systemctl("is-active", TIMER) == "inactive"


def test_a_timer_that_was_stopped_by_hand_is_told(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "clocked", "exit"))
    runner.set_schedule("clocked", "Sun 04:00")
    subprocess.run(["systemctl", "stop", TIMER], check=True)
    schedule = runner.schedule("clocked")
    assert schedule is not None
    assert (schedule.when, schedule.next_at) == ("Sun 04:00", None)
    assert runner.set_schedule("clocked", None) is None
    assert runner.schedule("clocked") is None
    assert not (SYSTEM / TIMER).exists()


@pytest.mark.parametrize("when", ["", "Sun 99:00", "soon", "2001-01-01", "daily\nx", "-x", "--help", "x" * 300])
def test_what_never_comes_is_one_sentence_and_writes_nothing(runner: SystemdRunner, tmp_path: Path, when: str) -> None:
    runner.install(engine(tmp_path, "clocked", "exit"))
    with pytest.raises(OperatorError, match=r"(calendar event|never comes again): give it like \"Sun 04:00\""):
        runner.set_schedule("clocked", when)
    assert not list(SYSTEM.rglob("gpudeck-restart-*"))


@pytest.mark.parametrize("when", ["Sun 04:00", "Mon..Fri 03:30", "daily", "2101-12-31 04:00:00 UTC", "*:0/15"])
def test_systemds_own_calendar_is_taken(when: str) -> None:
    check_calendar(when)


def test_anothers_timer_of_that_name_is_left(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "clocked", "exit"))
    (SYSTEM / TIMER).write_text("[Timer]\nOnCalendar=daily\n")
    try:
        with pytest.raises(OperatorError, match="was not written by gpudeck"):
            runner.set_schedule("clocked", "Sun 04:00")
    finally:
        (SYSTEM / TIMER).unlink()


def test_the_command(runner: SystemdRunner, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runner.install(engine(tmp_path, "clocked", "exit"))
    assert run(["schedule", "clocked"]) == 0
    assert run(["schedule", "clocked", "Sun 04:00", "--yes"]) == 0
    assert run(["schedule", "clocked"]) == 0
    assert run(["status", "clocked"]) == 3
    assert run(["schedule", "clocked", "--off", "--yes"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("clocked is not restarted by the clock.\n")
    assert f"This writes {TIMER} and starts it." in said
    assert "clocked is restarted by the clock (Sun 04:00), next on " in said
    assert "  clock   restarted by the clock (Sun 04:00), next on " in said
    assert said.endswith("clocked is restarted by the clock no more.\n")
