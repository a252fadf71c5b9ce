"""What the panel says of units that others wrote or changed, as root, under a booted systemd."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpudeck.services.box.types import GpuProcess
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from tests.rigs.at_the_panel import GPUDECK, free_port
from tests.rigs.fakenvml.fixtures import PlayedBox
from tests.rigs.small_engines import inside_systemd
from tests.rigs.terminal import Terminal
from tests.services.box.boxes import busy, pair

pytestmark = [*inside_systemd, pytest.mark.terminal, pytest.mark.timeout(180)]

UNITS = Path("/etc/systemd/system")
DRIFTS = UNITS / "vllm-drifts.service"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "GPUDECK_MODELS": str(tmp_path)}


@pytest.fixture
def drifting(runner: SystemdRunner, tmp_path: Path) -> Path:
    """The unit of an engine that runs."""
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\nsleep 1000 & wait\n")
    program.chmod(0o755)
    options = EngineOptions(port=free_port(), max_model_len=4096)
    runner.install(EngineSpec("drifts", str(tmp_path), Placement(((0,),)), options, program=(str(program),)))
    runner.start("drifts")
    return DRIFTS


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Path]:
    """A hand-written unit with faults, as it might be found."""
    path = UNITS / "qwen-prod.service"
    path.write_text(
        "[Service]\nEnvironment=CUDA_VISIBLE_DEVICES=0,1 TRANSFORMERS_CACHE=/data/hf\n"
        f"ExecStart=/opt/vllm/bin/vllm serve {tmp_path}/qwen --tensor-parallel-size 3 --port 8123\n"
    )
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    yield path
    path.unlink()
    subprocess.run(["systemctl", "daemon-reload"], check=True)


def edit(unit: Path) -> None:
    unit.write_text(unit.read_text().replace("--max-model-len 4096", "--max-model-len 8192"))


def test_an_edit_behind_its_back_is_shown_as_a_diff_and_loaded_on_request(
    home: dict[str, str], drifting: Path, fake_nvml: Callable[..., PlayedBox]
) -> None:
    with Terminal(GPUDECK, env={**fake_nvml(pair()).environment, **home}) as terminal:
        terminal.wait_for("drifts")
        edit(drifting)
        edited = drifting.read_text()
        terminal.wait_for("its file changed since it was loaded", 40)
        terminal.press("3", "u")
        terminal.wait_for("Its file was changed since systemd loaded it")
        terminal.wait_for("+  --max-model-len 8192")
        terminal.press("r")
        terminal.wait_for("No engine is restarted.")
        terminal.press("y")
        terminal.wait_for("systemd has read its units anew.")
        terminal.wait_for("runs an older command", 40)
        terminal.press("u")
        terminal.wait_for("It runs by another command than systemd has loaded")
        terminal.press("R")
        terminal.wait_for("Restart drifts?")
        terminal.press("y")
        terminal.wait_until(lambda screen: "runs an older command" not in screen, "the older command gone", 60)
        terminal.wait_for("edited by hand")
        terminal.press("q")
        assert terminal.wait_end() == 0
    assert drifting.read_text() == edited  # never overwritten unasked


def test_findings_of_a_hand_written_unit_and_its_correction(
    home: dict[str, str], theirs: Path, fake_nvml: Callable[..., PlayedBox]
) -> None:
    text = theirs.read_text()
    with Terminal(GPUDECK, env={**fake_nvml(pair()).environment, **home}, rows=60) as terminal:
        terminal.wait_for("qwen-prod")
        terminal.press("3")
        terminal.wait_for("findings: TP 3 × PP 1 asks for 3 cards", 40)
        terminal.press("u")
        terminal.wait_for("gpudeck did not write this unit.")
        terminal.wait_for("TRANSFORMERS_CACHE")
        terminal.wait_for("What gpudeck would write instead")
        terminal.wait_for("+Environment=CUDA_DEVICE_ORDER=PCI_BUS_ID")
        terminal.press("b")
        terminal.wait_for("qwen-prod-corrected stands on the board")
        terminal.press("q")
        assert terminal.wait_end() == 0
    assert theirs.read_text() == text


def test_before_a_reload_that_can_take_cards_from_containers_it_asks(
    home: dict[str, str], drifting: Path, fake_nvml: Callable[..., PlayedBox]
) -> None:
    group = Path("/sys/fs/cgroup/system.slice") / f"docker-{'cd' * 32}.scope"
    group.mkdir(parents=True)
    # In the rig process numbers are not the machine's, so that only a vLLM is believed to be on a card.
    with subprocess.Popen(["VLLM::EngineCore", "1000"], executable="/bin/sleep") as inside:
        try:
            (group / "cgroup.procs").write_text(str(inside.pid))
            playing = fake_nvml(pair(), (busy(0, GpuProcess(inside.pid, "python3", 1 << 30)), busy(1)))
            with Terminal(GPUDECK, env={**playing.environment, **home}) as terminal:
                terminal.wait_for("drifts")
                terminal.press("3")
                terminal.press("D")
                terminal.wait_for("which can take the cards")
                terminal.press("n")
                terminal.wait_until(lambda screen: "Remove drifts?" not in screen, "the question gone")
                terminal.press("q")
                assert terminal.wait_end() == 0
        finally:
            inside.kill()
            inside.wait()
            group.rmdir()
    assert drifting.exists()
