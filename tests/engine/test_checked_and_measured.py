"""The canned prompts and a measured run, driven through the real panel in a real terminal, against a real vLLM.

NVIDIA's library alone is a fake, since there is no GPU here: it plays a card that works while prompts are answered.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.rigs import tiny_model
from tests.rigs.at_the_panel import GPUDECK, free_port
from tests.rigs.fakenvml.fixtures import PlayedBox
from tests.rigs.terminal import Terminal
from tests.services.box.boxes import pair

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.environ.get("GPUDECK_ENGINE_ENV"), reason="no engine environment: tests/run --all"),
]

SCOPE = ("--scope", "embedded")


@pytest.fixture
def environment(tmp_path: Path, fake_nvml: Callable[..., PlayedBox]) -> Iterator[tuple[dict[str, str], PlayedBox]]:
    """A home of its own, a vLLM on one core, and a card that is idle.  The engine ends with the test."""
    program = tmp_path / "vllm"
    engine = Path(os.environ["GPUDECK_ENGINE_ENV"])
    program.write_text(
        "#!/bin/sh\n"
        "export VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=0 HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1\n"
        f'exec {engine}/bin/vllm "$@"\n'
    )
    program.chmod(0o755)
    played = fake_nvml(pair(), **{"gpu.0.utilization": "0 0"})
    variables = {
        **played.environment,
        "HOME": str(tmp_path),
        "GPUDECK_VLLM": str(program),
        **{f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("STATE", "CONFIG", "CACHE")},
    }
    yield variables, played
    gpudeck(variables, "remove", "tiny", "--yes")


def gpudeck(environment: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*GPUDECK, *words, *SCOPE], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_canned_prompts_and_a_bench_run(tmp_path: Path, environment: tuple[dict[str, str], PlayedBox]) -> None:
    variables, played = environment
    model = tmp_path / "tiny-llama"
    tiny_model.make(model)
    options = ("--max-model-len", "1024", "--load-format", "dummy", "--enforce-eager", "--served-model-name", "tiny")
    port = str(free_port())
    installed = gpudeck(
        variables, "install", str(model), "--stage", "0", "--name", "tiny", "--port", port, *options, "--yes"
    )
    assert installed.returncode == 0, installed.stderr
    started = gpudeck(variables, "start", "tiny")
    assert started.returncode == 0, started.stderr + started.stdout
    listed = json.loads(gpudeck(variables, "engines", "--json").stdout)["engines"]
    (core,) = [
        child.pid
        for child in psutil.Process(listed[0]["pid"]).children(recursive=True)
        if child.cmdline()[0].startswith("VLLM::EngineCore")
    ]

    with Terminal([*GPUDECK, *SCOPE], env=variables, rows=60) as terminal:
        terminal.wait_for("driver 580.95.05", 60)
        terminal.press("3")
        terminal.wait_for("tiny is ready", 60)
        played.change({"gpu.0.processes": f"{core}:{1 << 30}"})
        terminal.press("C")
        terminal.wait_for("short prompt", 60)
        played.change({"gpu.0.utilization": "85 40"})
        terminal.wait_for("All of it holds.", 120)
        for words in ("tiny, 1,024 tokens of context", "stream came", "usage came", "GPU 0 85 %", "By hand: curl"):
            terminal.wait_for(words)
        terminal.press("escape")

        terminal.press("M")
        terminal.wait_for("Tokens out")
        for text in ("\t64", "\t8", "\t1,2"):
            terminal.write(text)
        terminal.press("enter")
        terminal.wait_for("Kept as", 240)
        terminal.wait_for("by vllm bench serve")
        terminal.wait_for("first token p50")
        terminal.press("escape", "q")
        assert terminal.wait_end() == 0

    (kept,) = (tmp_path / "state" / "gpudeck" / "bench").glob("*.json")
    result = json.loads(kept.read_text())
    assert result["workload"]["generator"] == "vllm bench serve", result["notes"]
    assert result["targets"][0]["vllm_version"].startswith("0.32")
    assert [(level["level"], level["completed"], level["errors"]) for level in result["levels"]] == [
        (1, 8, []),
        (2, 8, []),
    ]
    assert all(level["output_tokens"] == 64 for level in result["levels"])
    assert result["levels"][0]["cards"][0]["utilization"] == 85
    assert result["levels"][0]["queue"] is not None

    # gpudeck's own load against the same engine.
    own = gpudeck(variables, "bench", "tiny", "--load", "own", "--concurrency", "2", "--output-tokens", "8", "--json")
    assert own.returncode == 0, own.stderr
    level = json.loads(own.stdout)["levels"][0]
    assert (level["completed"], level["output_tokens"], level["input_tokens"]) == (8, 64, 8 * 512)
