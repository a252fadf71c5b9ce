"""What the commands say of a unit that was changed behind gpudeck's back, under a real systemd."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpudeck.services.box.types import GpuProcess
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from tests.rigs.at_the_panel import GPUDECK
from tests.rigs.fakenvml.fixtures import PlayedBox
from tests.rigs.small_engines import inside_systemd
from tests.services.box.boxes import busy, pair

pytestmark = inside_systemd

UNIT = Path("/etc/systemd/system/vllm-drifts.service")


@pytest.fixture
def drifting(runner: SystemdRunner, tmp_path: Path) -> SystemdRunner:
    """An engine that runs, and whose unit was edited since."""
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\nsleep 1000 & wait\n")
    program.chmod(0o755)
    runner.install(
        EngineSpec(
            "drifts", "/models/none", Placement(((0,),)), EngineOptions(max_model_len=4096), program=(str(program),)
        )
    )
    runner.start("drifts")
    UNIT.write_text(UNIT.read_text().replace("--max-model-len 4096", "--max-model-len 8192"))
    return runner


def gpudeck(*words: str, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*GPUDECK, *words], capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL
    )


@pytest.mark.usefixtures("drifting")
def test_status_shows_each_difference_as_a_diff(home: dict[str, str]) -> None:
    told = gpudeck("status", "drifts", environment=home).stdout
    assert "Its file was changed since systemd loaded it" in told
    assert "It was edited by hand since gpudeck wrote it" in told
    assert "-  --max-model-len 4096\n" in told
    assert "+  --max-model-len 8192\n" in told


@pytest.mark.usefixtures("drifting")
def test_a_reload_asks_and_a_restart_then_runs_what_stands_there(home: dict[str, str]) -> None:
    asked = gpudeck("reload", "drifts", environment=home)
    assert asked.returncode == 1
    assert "This has systemd read all of its units anew. No engine is restarted." in asked.stdout
    assert "Its file was changed" in gpudeck("status", "drifts", environment=home).stdout
    early = gpudeck("restart", "drifts", "--no-wait", environment=home)
    assert early.returncode == 0
    assert "what it read before runs again; `gpudeck reload drifts` has it read the file" in early.stderr
    done = gpudeck("reload", "drifts", "--yes", environment=home)
    assert done.returncode == 0
    assert done.stdout.endswith("systemd has read it. `gpudeck restart drifts` runs drifts by it.\n")
    assert "It runs by another command than systemd has loaded" in gpudeck("status", "drifts", environment=home).stdout
    assert gpudeck("restart", "drifts", "--no-wait", environment=home).returncode == 0
    told = gpudeck("status", "drifts", environment=home).stdout
    assert "another command" not in told
    assert "by hand" in told
    assert gpudeck("reload", "drifts", environment=home).stdout == (
        "systemd has vllm-drifts.service as it stands on disk.\n"
    )


@pytest.mark.usefixtures("drifting")
def test_what_a_reload_may_do_to_containers_on_the_cards_is_said_first(
    home: dict[str, str], fake_nvml: Callable[..., PlayedBox]
) -> None:
    group = Path("/sys/fs/cgroup/system.slice") / f"docker-{'ab' * 32}.scope"
    group.mkdir(parents=True)
    # In the rig process numbers are not the machine's, so that only a vLLM is believed to be on a card.
    with subprocess.Popen(["VLLM::EngineCore", "1000"], executable="/bin/sleep") as inside:
        try:
            (group / "cgroup.procs").write_text(str(inside.pid))
            playing = fake_nvml(pair(), (busy(0, GpuProcess(inside.pid, "python3", 1 << 30)), busy(1)))
            environment = {**home, **playing.environment}
            for words in (("reload", "drifts"), ("remove", "drifts")):
                asked = gpudeck(*words, environment=environment)
                assert asked.returncode == 1
                assert "can take the cards from a container that uses them: container abababababab (GPU 0)." in (
                    asked.stdout
                )
        finally:
            inside.kill()
            inside.wait()
            group.rmdir()


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
