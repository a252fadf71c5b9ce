"""Hand-written services in a real systemd: found, read and listed beside gpudeck's own."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudeck.app.cli import run
from gpudeck.services.adoption.on_box import find_others
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError
from tests.rigs.small_engines import Heard, inside_systemd, until

pytestmark = inside_systemd

UNITS = Path(__file__).parents[1] / "data" / "units"
SYSTEM = Path("/etc/systemd/system")


@pytest.fixture
def runner() -> Iterator[SystemdRunner]:
    """A manager that has read the sample units; they are gone again afterwards."""
    shutil.copytree(UNITS, SYSTEM, dirs_exist_ok=True)
    runner = SystemdRunner(Scope.SYSTEM)
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    yield runner
    for path in UNITS.iterdir():
        there = SYSTEM / path.name
        shutil.rmtree(there) if there.is_dir() else there.unlink()
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    runner.close()


def test_services_of_others_are_found(runner: SystemdRunner) -> None:
    found = {each.state.unit: each for each in find_others(runner)}
    assert {"vllm-gemma.service", "vllm-tp3.service", "qwen-prod.service", "llm-docker.service"} <= set(found)
    assert all(not each.state.managed and each.state.active == "inactive" for each in found.values())
    assert found["qwen-prod.service"].adopted.spec.options.port == 9001


def test_an_instance_with_a_drop_in_is_found_and_its_template_is_not(runner: SystemdRunner) -> None:
    found = {each.state.unit: each for each in find_others(runner)}
    assert found["vllm@coder.service"].adopted.spec.model == "/data/models/coder"
    assert "vllm@.service" not in found


def test_engines_lists_them_with_their_findings(runner: SystemdRunner, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["engines", "--json"]) == 0
    engines = {each["unit"]: each for each in json.loads(capsys.readouterr().out)["engines"]}
    three = engines["vllm-tp3.service"]
    assert (three["managed"], three["tensor_parallel_size"], three["gpus"], three["port"]) == (False, 3, [1, 2], 8001)
    assert "world-size" in {each["rule"] for each in three["findings"]}
    assert run(["engines"]) == 0
    told = capsys.readouterr().out
    assert "gpudeck adopt qwen-prod.service" in told
    assert run(["adopt", "qwen-prod"]) == 0
    assert "--swap-space" in capsys.readouterr().out


def test_a_service_of_others_is_started_followed_and_stopped_like_an_engine(runner: SystemdRunner) -> None:
    (SYSTEM / "qwen-prod.service").write_text(
        "[Service]\nEnvironment=CUDA_VISIBLE_DEVICES=1\n"
        "ExecStart=/bin/sh -c 'echo up; exec sleep 1000; exec vllm serve /m --port 9001'\n"
    )
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    heard = Heard()
    names = [state.name for state in runner.engines()]
    assert {"qwen-prod", "coder", "gemma"} <= set(names)
    runner.watch(heard)
    runner.start("qwen-prod")
    until("told as active", lambda: "active" in heard.active("qwen-prod"))
    state = runner.state("qwen-prod")
    assert state is not None
    assert (state.active, state.managed, state.unit) == ("active", False, "qwen-prod.service")
    assert state.spec is not None
    assert (state.spec.model, state.spec.options.port, state.spec.placement.gpus) == ("/m", 9001, (1,))
    until("its log", lambda: any(line.text == "up" for line in runner.history("qwen-prod")))
    with pytest.raises(OperatorError, match="not written by gpudeck"):
        runner.remove("qwen-prod")
    runner.stop("qwen-prod")
    until("told as inactive", lambda: heard.active("qwen-prod")[-1:] == ["inactive"])
