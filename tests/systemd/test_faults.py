"""Engines that hang, leave their service or die while they serve: what systemd has of them, and what gpudeck says."""

import os
import subprocess
from pathlib import Path

from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.plan.types import EngineOptions
from tests.rigs.at_the_panel import GPUDECK, free_port
from tests.rigs.small_engines import Heard, engine, inside_systemd, until
from tests.systemd.test_lifecycle import SLEEPS, drop_in, systemctl

pytestmark = inside_systemd


def gpudeck(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*GPUDECK, *words], capture_output=True, text=True, check=False, timeout=60)


def main_pid(runner: SystemdRunner, name: str) -> int:
    """0 where it has none."""
    state = runner.state(name)
    return (state.main_pid if state is not None else None) or 0


def group_of(unit: str) -> list[int]:
    """The processes that the unit still has."""
    folder = Path("/sys/fs/cgroup" + systemctl("show", "-P", "ControlGroup", unit))
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def test_one_that_hangs_in_its_start_is_starting_and_can_be_stopped(runner: SystemdRunner, tmp_path: Path) -> None:
    said = "echo '(EngineCore pid=1) INFO 12-01 02:16:12 [core.py:1] Starting to load model /m...'; exec sleep 1000"
    runner.install(engine(tmp_path, "hangs", said, options=EngineOptions(port=free_port())))
    assert gpudeck("start", "--no-wait", "hangs").returncode == 0
    until("its log says nothing", lambda: "loading weights" in gpudeck("status", "hangs").stdout)
    told = gpudeck("status", "hangs").stdout
    assert "and answers" not in told
    done = gpudeck("stop", "hangs")
    assert (done.returncode, done.stdout) == (0, "hangs is stopped; none of its processes is left.\n")
    assert systemctl("is-active", "vllm-hangs") == "inactive"


def test_one_that_forks_away_leaves_nothing_behind(runner: SystemdRunner, tmp_path: Path) -> None:
    """What it left in the background is ended with it: it would hold the card, and the next try would find it full."""
    note = tmp_path / "pid"
    runner.install(engine(tmp_path, "away", f"setsid -f sh -c 'echo $$ >>{note}; exec sleep 1000'; sleep 0.2; exit 0"))
    drop_in("vllm-away.service", "[Service]\nRestartSec=20ms\nRestartMaxDelaySec=20ms\n")
    heard = Heard()
    runner.watch(heard)
    runner.start("away")
    until("the start limit is not reached", lambda: [s for s in heard.of("away") if s.active == "failed"])
    left = [int(pid) for pid in note.read_text().split()]
    assert len(left) >= 2
    until("a process is left", lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
    assert group_of("vllm-away") == []
    assert gpudeck("status", "away").returncode == 3


def test_one_that_dies_while_it_serves_is_told_with_its_last_words(runner: SystemdRunner, tmp_path: Path) -> None:
    last = "echo 'Traceback (most recent call last):'; echo 'RuntimeError: CUDA error: an illegal memory access'"
    runner.install(engine(tmp_path, "dies", f"die() {{ {last}; exit 0; }}\ntrap die USR1\nwhile :; do sleep 0.1; done"))
    drop_in("vllm-dies.service", "[Service]\nRestart=no\n")
    runner.start("dies")
    pid = until("it does not run", lambda: main_pid(runner, "dies"))
    os.kill(pid, 10)
    until("it still runs", lambda: systemctl("is-active", "vllm-dies") == "inactive")
    found = gpudeck("diagnose", "--engine", "dies")
    assert found.returncode == 0
    assert "RuntimeError: CUDA error: an illegal memory access" in found.stdout


def test_what_is_killed_between_two_looks_is_not_taken_for_the_same_run(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "twice", SLEEPS))
    drop_in("vllm-twice.service", "[Service]\nRestartSec=1ms\nRestartMaxDelaySec=1ms\n")
    runner.start("twice")
    first = until("it does not run", lambda: main_pid(runner, "twice"))
    os.kill(first, 9)
    second = until("it is not restarted", lambda: (pid := main_pid(runner, "twice")) != first and pid)
    assert group_of("vllm-twice") == [second]
