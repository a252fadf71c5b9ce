"""The whole main job on real parts: pynvml, a real systemd over D-Bus, the real journal and a real vLLM.

Only NVIDIA's library is a fake, since there is no GPU here; vLLM is its CPU build.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.rigs import tiny_model
from tests.rigs.at_the_panel import GPUDECK, answered, choose_model, drag_card, free_port, set_options, stop_selected
from tests.rigs.fakenvml.fixtures import PlayedBox
from tests.rigs.terminal import Terminal
from tests.services.box.boxes import pair

pytestmark = [
    pytest.mark.engine,
    pytest.mark.systemd,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.environ.get("WITH_SYSTEMD"), reason="run by tests/rigs/with_systemd"),
    pytest.mark.skipif(not os.environ.get("GPUDECK_ENGINE_ENV"), reason="no engine environment: tests/run --all"),
]

UNIT = "vllm-tiny-llama.service"


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """The command of the CPU build, with the settings that two small ranks on two cores need."""
    program = tmp_path / "vllm"
    engine = Path(os.environ["GPUDECK_ENGINE_ENV"]) / "bin" / "vllm"
    program.write_text(
        "#!/bin/sh\n"
        "export VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND='0|1' HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1\n"
        f'exec {engine} "$@"\n'
    )
    program.chmod(0o755)
    return program


def systemctl(*words: str) -> str:
    return subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False).stdout.strip()


def processes_of_unit() -> list[psutil.Process]:
    """Every process in the unit's control group, as the process table has it."""
    found = []
    for process in psutil.process_iter():
        try:
            group = Path(f"/proc/{process.pid}/cgroup").read_text()
        except OSError:
            continue
        if f"/{UNIT}" in group:
            found.append(process)
    return found


def test_from_bare_cards_to_an_answer_and_back(tmp_path: Path, vllm: Path, fake_nvml: Callable[..., PlayedBox]) -> None:
    models = tmp_path / "models"
    tiny_model.make(models / "tiny-llama")
    port = free_port()
    played = fake_nvml(pair())
    environment = {
        **played.environment,
        "HOME": str(tmp_path),
        "GPUDECK_VLLM": str(vllm),
        "GPUDECK_MODELS": str(models),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    with Terminal(GPUDECK, env=environment, rows=60) as terminal:
        terminal.wait_for("driver 580.95.05")
        terminal.wait_for("systemd (system)")
        choose_model(terminal, "tiny-llama")
        set_options(
            terminal,
            {
                "--port": str(port),
                "--served-model-name": "tiny",
                "--max-model-len": "1024",
                "--load-format": "dummy",
                "--enforce-eager": "yes",
            },
        )
        drag_card(terminal, "0 A100-SXM4", "stage 0")
        terminal.wait_for("4 layers")
        drag_card(terminal, "1 A100-SXM4", "+ rank 1")
        terminal.press("s")
        terminal.wait_for("What will run")
        terminal.wait_for("ExecStart=")
        terminal.press("enter")
        terminal.wait_for("starting", 30)
        terminal.wait_for("is ready", 240)
        terminal.press("c")
        terminal.write("Say something.")
        terminal.press("enter")
        terminal.wait_until(answered, "answer", 180)
        # What the engine counts of itself stands in the engine list.
        terminal.wait_for("KV cache  0 running", 60)

        # What the screen said is true.
        assert systemctl("is-active", UNIT) == "active"
        shown = systemctl("show", UNIT, "-p", "ExecStart", "-p", "Environment", "-p", "FragmentPath")
        assert f"{vllm} serve {models}/tiny-llama --tensor-parallel-size 2" in shown
        assert "CUDA_VISIBLE_DEVICES=0,1" in shown
        assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in shown
        assert f"/etc/systemd/system/{UNIT}" in shown
        titles = {" ".join(process.cmdline())[:40].strip() for process in processes_of_unit()}
        assert {"VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1"} <= titles, titles
        journal = subprocess.run(
            ["journalctl", "-u", UNIT, "-o", "json", "--no-pager", "-a"], capture_output=True, text=True, check=True
        ).stdout
        messages = [str(json.loads(line).get("MESSAGE")) for line in journal.splitlines()]
        assert any("Application startup complete" in message for message in messages)
        # Asked whether it is ready until it was, and no more: the panel's polling must not fill the engine's log.
        assert sum("GET /health" in message for message in messages) <= 3

        terminal.press("escape", "3")
        stop_selected(terminal, "tiny-llama")
        assert systemctl("is-active", UNIT) == "inactive"
        assert processes_of_unit() == []
        terminal.press("q")
        assert terminal.wait_end() == 0
    # Leaving the panel leaves the unit, to be started again.
    assert Path(f"/etc/systemd/system/{UNIT}").exists()
