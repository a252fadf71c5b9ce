"""The commands on engines that crash, wait and are followed, in a real systemd."""

import re
import subprocess
import time
from pathlib import Path

import pytest

from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.plan.types import EngineOptions
from tests.rigs.at_the_panel import GPUDECK, free_port
from tests.rigs.small_engines import engine, inside_systemd, until

pytestmark = inside_systemd


def gpudeck(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*GPUDECK, *words], capture_output=True, text=True, check=False, timeout=60)


def crashing(runner: SystemdRunner, folder: Path, name: str, pause: str) -> None:
    """An engine that says which try it is and crashes, and that systemd starts again after `pause`."""
    tries = folder / f"{name}.tries"
    script = f"echo x >> {tries}; echo 'RuntimeError: try' $(wc -l < {tries}); sleep 0.2; exit 3"
    runner.install(engine(folder, name, script, options=EngineOptions(port=free_port())))
    unit = Path(f"/etc/systemd/system/vllm-{name}.service.d")
    unit.mkdir(exist_ok=True)
    (unit / "test.conf").write_text(f"[Service]\nRestartSec={pause}\nRestartMaxDelaySec=infinity\nRestartSteps=0\n")
    subprocess.run(["systemctl", "daemon-reload"], check=True)


def sub(runner: SystemdRunner, name: str) -> str:
    state = runner.state(name)
    assert state is not None
    return state.sub


def test_status_between_two_tries(runner: SystemdRunner, tmp_path: Path) -> None:
    crashing(runner, tmp_path, "loops", "300s")
    runner.start("loops")
    until("it does not wait", lambda: sub(runner, "loops") == "auto-restart")
    state = runner.state("loops")
    assert state is not None
    assert state.retry_at is not None
    assert 200 < state.retry_at - time.time() <= 300
    assert re.search(r"^loops +auto-restart ", gpudeck("engines").stdout, re.MULTILINE)
    done = gpudeck("status", "loops")
    assert done.returncode == 3
    assert re.search(r"systemd tries again in (300|2\d\d) s;", done.stdout)
    assert "`gpudeck stop loops` ends that" in done.stdout
    assert gpudeck("stop", "loops").returncode == 0
    assert gpudeck("status", "loops").returncode == 3
    assert "systemd tries" not in gpudeck("status", "loops").stdout


def test_a_start_between_two_tries_is_at_once_and_tells_of_that_try_alone(
    runner: SystemdRunner, tmp_path: Path
) -> None:
    crashing(runner, tmp_path, "anew", "300s")
    runner.start("anew")
    until("it does not wait", lambda: sub(runner, "anew") == "auto-restart")
    done = gpudeck("start", "anew")
    assert done.returncode == 1
    assert "already" not in done.stdout
    assert (tmp_path / "anew.tries").read_text() == "x\nx\n"
    assert "systemd tries again in " in done.stderr
    assert "try 1" not in done.stderr


def test_a_loop_that_systemd_ended_is_told_and_can_be_begun_again(runner: SystemdRunner, tmp_path: Path) -> None:
    crashing(runner, tmp_path, "over", "10ms")
    runner.start("over")
    until("the start limit is not reached", lambda: sub(runner, "over") == "failed")
    state = runner.state("over")
    assert state is not None
    assert state.gave_up
    done = gpudeck("status", "over")
    assert done.returncode == 3
    assert "systemd starts it no more after so many crashes: mend it, then `gpudeck start over`." in done.stdout
    before = len((tmp_path / "over.tries").read_text())
    assert gpudeck("start", "over", "--no-wait").returncode == 0
    until("it is not tried again", lambda: len((tmp_path / "over.tries").read_text()) > before)


def test_a_start_that_is_stopped_meanwhile_says_so(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "halted", "exec sleep 1000", options=EngineOptions(port=free_port())))
    with subprocess.Popen(
        [*GPUDECK, "start", "halted"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline().endswith("starting\n")
        runner.stop("halted")
        assert child.wait(30) == 1
        assert "halted was stopped meanwhile: `gpudeck start halted` starts it again." in child.stderr.read()


@pytest.mark.parametrize("last", [(), ("-n", "3")])
def test_following_repeats_nothing_of_the_history(runner: SystemdRunner, tmp_path: Path, last: tuple[str, ...]) -> None:
    go = tmp_path / "go"
    script = (
        f"for i in 1 2 3 4 5; do echo line $i; done; while ! [ -e {go} ]; do sleep 0.05; done; "
        "echo then; exec sleep 1000"
    )
    runner.install(engine(tmp_path, "seam", script))
    runner.start("seam")
    until("it says nothing", lambda: any(line.text == "line 5" for line in runner.history("seam")))
    with subprocess.Popen([*GPUDECK, "logs", "-f", "seam", *last], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = [child.stdout.readline()]
        while told[-1] != "then\n":
            if told[-1] == "line 5\n":
                go.touch()
            told.append(child.stdout.readline())
        child.terminate()
    assert len(told) == len(set(told))
    runner.remove("seam")


def test_a_service_of_others_that_ends_at_once_is_no_start(runner: SystemdRunner) -> None:
    unit = Path("/etc/systemd/system/boom.service")
    unit.write_text("[Service]\nExecStart=/bin/sh -c 'exit 1; vllm serve'\n")
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    try:
        done = subprocess.run([*GPUDECK, "start", "boom"], capture_output=True, text=True, check=False, timeout=60)
    finally:
        unit.unlink()
        subprocess.run(["systemctl", "reset-failed", "boom.service"], check=False)
        subprocess.run(["systemctl", "daemon-reload"], check=True)
    assert done.returncode == 1
    assert done.stderr.startswith("gpudeck: boom ended ")
    assert "exit status 1" in done.stderr
