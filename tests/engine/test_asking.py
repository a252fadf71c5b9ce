"""A real vLLM (CPU build) is asked about command lines, as `gpudeck plan --ask` does."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.vllm.answer import Reply
from gpudeck.services.vllm.asking import Asking
from gpudeck.services.vllm.installed import installed
from tests.rigs import tiny_model
from tests.rigs.fakenvml.fixtures import PlayedBox
from tests.services.box.boxes import pair

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not os.environ.get("GPUDECK_ENGINE_ENV"), reason="no engine environment: tests/run --all"),
]
SETTINGS = (("VLLM_CPU_KVCACHE_SPACE", "1"),)


@pytest.fixture(scope="module")
def vllm() -> str:
    return str(Path(os.environ["GPUDECK_ENGINE_ENV"]) / "bin" / "vllm")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model.make(directory)
    return directory


def test_its_version_is_known_without_running_it(vllm: str) -> None:
    found = installed((vllm,))
    assert found is not None
    said = subprocess.run([vllm, "--version"], capture_output=True, text=True, check=True).stdout
    assert found.version is not None
    assert said.strip().splitlines()[-1].startswith(found.version)
    assert found.cuda is None


@pytest.mark.parametrize(
    ("options", "stages", "reply", "words"),
    [
        ({"max_model_len": 1024, "enforce_eager": True, "load_format": "dummy"}, ((0,),), Reply.ACCEPTED, ""),
        ({}, ((0, 1),), Reply.ACCEPTED, ""),
        ({"extra": ("--swap-space", "4")}, ((0,),), Reply.REFUSED, "unrecognized arguments: --swap-space 4"),
        ({"kv_cache_dtype": "fp9"}, ((0,),), Reply.REFUSED, "argument --kv-cache-dtype: invalid choice: 'fp9'"),
        ({"max_num_seqs": 0}, ((0,),), Reply.REFUSED, "max_num_seqs"),
        ({}, ((0, 1, 2),), Reply.REFUSED, "heads (4) must be divisible by tensor parallel size (3)"),
        ({"max_model_len": 10**6}, ((0,),), Reply.REFUSED, "User-specified max_model_len (1000000) is greater"),
        ({"quantization": "awq"}, ((0,),), Reply.REFUSED, "Cannot find the config file for awq"),
    ],
)  # fmt: skip
def test_what_it_says(
    vllm: str, model: Path, options: dict[str, object], stages: tuple[tuple[int, ...], ...], reply: Reply, words: str
) -> None:
    engine_options = EngineOptions(**options)  # type: ignore[arg-type]
    spec = EngineSpec("tiny", str(model), Placement(stages), engine_options, program=(vllm,), environment=SETTINGS)
    answer = Asking().ask(spec)
    assert answer.reply is reply, answer.text
    assert words in answer.text


def test_a_model_that_is_not_there(vllm: str) -> None:
    spec = EngineSpec("none", "/no/such/model", Placement(((0,),)), program=(vllm,), environment=SETTINGS)
    answer = Asking().ask(spec)
    assert answer.reply is Reply.REFUSED
    assert "/no/such/model" in answer.text


@pytest.mark.parametrize(
    ("words", "rule", "code"), [((), "vllm-accepts", 0), (("--", "--no-such-flag"), "vllm-refuses", 1)]
)
def test_plan_asks(
    vllm: str, model: Path, fake_nvml: Callable[..., PlayedBox], words: tuple[str, ...], rule: str, code: int
) -> None:
    environment = {**os.environ, **fake_nvml(pair()).environment, "GPUDECK_VLLM": vllm, "VLLM_CPU_KVCACHE_SPACE": "1"}
    command = [str(Path(sys.executable).with_name("gpudeck")), "plan", str(model), "--stage", "0,1", "--ask", "--json"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, env=environment, check=False)
    assert done.stderr == ""
    assert done.returncode == code
    findings = json.loads(done.stdout)["placements"][0]["findings"]
    assert rule in [finding["rule"] for finding in findings]
