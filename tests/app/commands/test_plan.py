"""`gpudeck plan`, as a script runs it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.services.vllm.test_installed import program

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "tests" / "data" / "models"
SCHEMA = json.loads((ROOT / "docs" / "plan-command.schema.json").read_text())
CROSSED = {
    "gpus": [
        {"index": index, "name": "NVIDIA RTX A5500", "memory_mib": 24564, "compute_capability": "8.6",
         "memory_bandwidth_gbs": 768}
        for index in range(4)
    ],
    "links": [{"a": 0, "b": 2, "kind": "NV4"}, {"a": 1, "b": 3, "kind": "NV4"}],
}  # fmt: skip


@pytest.fixture
def box(tmp_path: Path) -> Path:
    path = tmp_path / "box.json"
    path.write_text(json.dumps(CROSSED))
    return path


def gpudeck(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpudeck.app", "plan", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def document(box: Path, *words: str, code: int = 0) -> dict[str, Any]:
    done = gpudeck("--json", "--box", str(box), *words)
    assert (done.returncode, done.stderr) == (code, "")
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def test_the_best_placements_of_the_asked_shape(box: Path) -> None:
    found = document(
        box, str(MODELS / "qwen2.5-32b"), "--max-model-len", "8192", "--tensor-parallel-size", "2",
        "--pipeline-parallel-size", "2",
    )  # fmt: skip
    assert found["verdict"] == "ready"
    best = found["placements"][0]
    assert best["stages"] == [[0, 2], [1, 3]]
    assert best["env"]["CUDA_VISIBLE_DEVICES"] == "0,2,1,3"
    assert best["env"]["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert best["estimate"]["decode_tokens_per_s"] > 1
    total = 24564 << 20
    for part in best["memory"]["per_gpu"]:
        assert part["weights"] + part["kv_cache"] + part["overhead"] + part["other"] + part["free"] == total


def test_combinations_stand_beside_the_placements_and_have_the_same_shape(box: Path) -> None:
    found = document(box, str(MODELS / "llama-3.1-8b"), "--max-model-len", "8192", "--for", "concurrency")
    assert found["objective"] == "concurrency"
    (halves,) = found["combinations"]
    assert [placement["stages"] for placement in halves["placements"]] == [[[0, 2]], [[1, 3]]]
    ports = [words[words.index("--port") + 1] for words in (placement["argv"] for placement in halves["placements"])]
    assert ports == ["8000", "8001"]
    asked = document(box, str(MODELS / "llama-3.1-8b"), "--max-model-len", "8192", "--tensor-parallel-size", "2")
    assert asked["combinations"] == []


def test_the_best_is_told_in_full_and_the_others_in_two_lines_each(box: Path) -> None:
    words = ("--box", str(box), str(MODELS / "llama-3.1-8b"), "--max-model-len", "8192")
    short, whole = gpudeck(*words).stdout, gpudeck(*words, "--all").stdout
    assert short.count("CUDA_VISIBLE_DEVICES=") == 1
    assert "Others, best first" in short
    assert "      two of four RTX A5500s, joined by NV4" in short
    assert "Side by side: two engines, each two of four RTX A5500s joined by NV4" in short
    assert whole.count("CUDA_VISIBLE_DEVICES=") > 3
    assert "Others" not in whole


def test_replicas_are_free_unless_given(box: Path) -> None:
    words = (str(MODELS / "llama-3.2-1b"), "--max-model-len", "2048", "--for", "concurrency")
    assert document(box, *words)["placements"][0]["replicas"] > 1
    assert {found["replicas"] for found in document(box, *words, "--replicas", "2")["placements"]} == {2}


def test_a_given_order_is_kept(box: Path) -> None:
    found = document(
        box, str(MODELS / "llama-3.1-8b"), "--max-model-len", "4096", "--stage", "3,1", "--stage", "2,0",
        "--layer-partition", "12,20",
    )  # fmt: skip
    placement = found["placements"][0]
    assert placement["stages"] == [[3, 1], [2, 0]]
    assert placement["env"]["VLLM_PP_LAYER_PARTITION"] == "12,20"
    assert placement["layer_partition"] == [12, 20]


def test_a_blocked_plan_prints_its_result_and_exits_1(box: Path) -> None:
    found = document(box, str(MODELS / "llama-3.1-8b"), "--stage", "0,1,2", code=1)
    assert found["verdict"] == "blocked"
    assert found["placements"][0]["findings"][0]["severity"] == "error"


@pytest.mark.parametrize(
    "stages", [("1,1",), ("1", "1"), ("0,1", "1,0"), ("0,1,2", "3"), ("7",), ("9" * 30,), ("0,7",), ("0,0,0,0",)]
)
def test_an_impossible_placement_is_blocked_in_text_and_json(box: Path, stages: tuple[str, ...]) -> None:
    words = [str(MODELS / "llama-3.1-8b"), *(word for stage in stages for word in ("--stage", stage))]
    assert document(box, *words, code=1)["verdict"] == "blocked"
    told = gpudeck("--box", str(box), *words)
    assert (told.returncode, told.stderr) == (1, "")
    assert "BLOCKED" in told.stdout


def test_no_placement_at_all_exits_1_and_says_why(box: Path) -> None:
    found = document(box, str(MODELS / "mixtral-8x22b"), code=1)
    assert (found["verdict"], found["placements"]) == ("blocked", [])
    assert found["findings"][0]["rule"] == "no-placement"
    text = gpudeck("--box", str(box), str(MODELS / "mixtral-8x22b"))
    assert text.returncode == 1
    assert "no-placement" in text.stdout


def test_the_text_shows_verdict_memory_and_command(box: Path) -> None:
    done = gpudeck("--box", str(box), str(MODELS / "qwen2.5-32b-awq"), "--stage", "0,2", "--max-model-len", "8192")
    assert (done.returncode, done.stderr) == (0, "")
    assert "READY  TP 2 × PP 1  GPUs 0,2" in done.stdout
    assert "KV cache for" in done.stdout
    assert "CUDA_VISIBLE_DEVICES=0,2" in done.stdout


def test_the_installed_engines_cuda_is_held_against_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "old.json"
    old.write_text(json.dumps({**CROSSED, "driver": "550.54.14", "cuda": "12.4"}))
    python = program(tmp_path / "bin" / "python", "#!/bin/sh\n")
    monkeypatch.setenv("GPUDECK_VLLM", str(program(tmp_path / "bin" / "vllm", f"#!{python}\n")))
    torch = tmp_path / "lib" / "python3.12" / "site-packages" / "torch" / "version.py"
    torch.parent.mkdir(parents=True)
    torch.write_text("cuda: Optional[str] = '13.0'\n")
    words = (str(MODELS / "llama-3.1-8b"), "--stage", "0,2", "--max-model-len", "8192")
    found = document(old, *words, code=1)
    assert found["placements"][0]["findings"][0]["rule"] == "driver-too-old"
    assert document(old, *words, "--vllm-version", "0.19")["verdict"] != "blocked"  # of that one the build is not known


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("/no/such/model",), 1, "is not there"),
        ((str(MODELS / "llama-3.1-8b"), "--stage", "0,x"), 1, "no list of card numbers"),
        ((str(MODELS / "llama-3.1-8b"), "--stage", "0,1", "--tensor-parallel-size", "4"), 1, "contradicts --stage"),
        ((str(MODELS / "llama-3.1-8b"), "--for", "fun"), 2, "invalid choice"),
        ((), 2, "MODEL"),
        ((str(MODELS / "llama-3.1-8b"), "--stage", "0", "--share", "x"), 1, "--share x is no list of card numbers"),
        ((str(MODELS / "llama-3.1-8b"), "--stage", "0", "--vllm-version", "banana"), 2, "banana is no version of vLLM"),
    ],
)
def test_wrong_requests(box: Path, words: tuple[str, ...], code: int, part: str) -> None:
    done = gpudeck("--json", "--box", str(box), *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert part in done.stderr
    assert "Traceback" not in done.stderr


def test_bytes_per_token_are_shown_with_their_arithmetic(box: Path) -> None:
    done = gpudeck(str(MODELS / "llama-3.2-1b"), "--box", str(box), "--stage", "0", "--max-model-len", "8k")
    assert "2 × 8 KV heads × 64 × 2 B × 16 layers = 32 KiB a token" in done.stdout


def test_the_installed_vllm_is_not_asked_about_other_cards(box: Path) -> None:
    done = gpudeck(str(MODELS / "llama-3.2-1b"), "--box", str(box), "--stage", "0", "--ask")
    assert done.returncode == 1
    assert "--ask asks the vLLM of this machine about its own cards" in done.stderr


def test_what_does_not_fit_is_told_as_over_and_never_as_a_negative_rest(box: Path) -> None:
    done = gpudeck("--box", str(box), str(MODELS / "qwen2.5-32b"), "--stage", "0")
    assert done.returncode == 1
    assert " GiB over" in done.stdout
    assert "free -" not in done.stdout


def test_the_version_decides_which_options_are_refused(box: Path) -> None:
    words = (str(MODELS / "llama-3.2-1b"), "--stage", "0", "--", "--swap-space", "4")
    newest = document(box, "--vllm-version", "0.33", *words, code=1)
    assert "option-removed" in [finding["rule"] for finding in newest["placements"][0]["findings"]]
    old = document(box, "--vllm-version", "0.17", *words)
    assert "option-deprecated" in [finding["rule"] for finding in old["placements"][0]["findings"]]


def test_a_tokenizer_of_another_model_is_read_and_told(box: Path, tmp_path: Path) -> None:
    other = tmp_path / "tokenizer"
    other.mkdir()
    (other / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 31_999}}}))
    found = document(box, str(MODELS / "llama-3.2-1b"), "--stage", "0", "--", "--tokenizer", str(other))
    assert "tokenizer-other-model" in [finding["rule"] for finding in found["placements"][0]["findings"]]
