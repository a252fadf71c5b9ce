"""Units as people write them: found, read back, judged, corrected."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.adoption.corrected import corrected_text, difference
from gpudeck.services.adoption.files import read_text, unit_files
from gpudeck.services.adoption.on_box import find_others, instances
from gpudeck.services.adoption.read import read_unit
from gpudeck.services.adoption.review import Ground, review
from gpudeck.services.adoption.types import Adopted, Review, UnitFiles
from gpudeck.services.box.simulated import simulated_box
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.engine.unit_text import spec_of
from gpudeck.services.plan.types import EngineOptions, Placement
from gpudeck.services.rules.surroundings import Surroundings

UNITS = Path(__file__).parents[2] / "data" / "units"
GEMMA = "/data/models/gemma-3-12b-it-q4_0/gemma-3-12b-it-q4_0.gguf"


def files(unit: str) -> UnitFiles:
    found = unit_files([UNITS], unit)
    assert found is not None
    return found


def adopted(unit: str) -> Adopted:
    found = read_unit(files(unit), read_text)
    assert found is not None
    return found


def reviewed(unit: str, **around: object) -> Review:
    return review(adopted(unit), Ground(around=Surroundings(**around)))  # type: ignore[arg-type]


def rules(found: Review) -> dict[str, str]:
    return {each.rule: each.severity.value for each in found.findings}


def command(
    line: str, *directives: str, texts: dict[str, str] | None = None, unit: str = "x.service"
) -> Adopted | None:
    text = "[Service]\n" + "\n".join([*directives, f"ExecStart={line}"])
    return read_unit(UnitFiles(unit, (text,)), (texts or {}).get)


def test_gemma() -> None:
    found = adopted("vllm-gemma.service")
    assert (found.tensor_parallel_size, found.pipeline_parallel_size, found.cards) == (1, 3, (0, 1, 2))
    assert found.spec.name == "gemma"
    assert found.spec.model == GEMMA
    assert found.spec.placement == Placement(((0,), (1,), (2,)))
    assert found.spec.program == ("/opt/conda/envs/vllm/bin/vllm",)
    assert found.spec.options == EngineOptions(
        host="0.0.0.0",
        port=8000,
        served_model_name="gemma3-12b-q4",
        max_model_len=16384,
        gpu_memory_utilization=0.9,
        max_num_seqs=64,
        max_num_batched_tokens=16384,
        extra=("--tokenizer", "/data/models/gemma-3-27b-it", "--api-key", "sk-example", "--language-model-only"),
    )
    told = rules(reviewed("vllm-gemma.service"))
    wanted = {"api-key-shown", "runs-as-root", "open-to-network", "tokenizer-other-model", "gguf-plugin"}
    assert wanted <= set(told)
    assert "served-name-belies" not in told
    assert "gguf-plugin" not in rules(reviewed("vllm-gemma.service", vllm_version="0.23"))


def test_three_ranks_on_two_cards() -> None:
    found = adopted("vllm-tp3.service")
    assert (found.tensor_parallel_size, found.cards, found.spec.options.port) == (3, (1, 2), 8001)
    judged = reviewed("vllm-tp3.service")
    assert judged.findings[0].rule == "world-size"
    assert "asks for 3 cards, and the engine sees 2 (1, 2)" in judged.findings[0].message
    told = rules(judged)
    assert told["environment-gone"] == "warning"
    assert told["served-name-belies"] == "warning"
    assert judged.corrected is not None
    assert judged.corrected.placement == Placement(((1, 2),))
    assert judged.corrected.environment == (("HF_HOME", "/var/cache/huggingface"),)
    assert judged.corrected.options.served_model_name is None


def test_the_old_entry_point() -> None:
    found = adopted("qwen-prod.service")
    assert found.old_entry_point
    assert found.spec.program == ("/opt/llm/venv/bin/vllm",)
    assert found.spec.model == "Qwen/Qwen2.5-32B-Instruct-AWQ"
    assert found.spec.placement == Placement(((2, 3),))
    assert (found.spec.options.port, found.spec.options.quantization, found.user) == (9001, "awq_marlin", "llm")
    judged = reviewed("qwen-prod.service", vllm_version="0.32")
    told = [each.message for each in judged.findings if each.rule == "option-removed"]
    assert any("--swap-space" in each for each in told)
    assert any("--disable-log-requests" in each for each in told)
    assert "runs-as-root" not in rules(judged)
    assert "open-to-network" not in rules(judged)  # the key may stand in the file that can not be read
    assert judged.corrected is not None
    assert judged.corrected.options.extra == ()


def test_a_container() -> None:
    found = adopted("llm-docker.service")
    assert found.container is not None
    assert (found.container.image, found.container.name) == ("vllm/vllm-openai:v0.10.2", "llm")
    assert found.version == "0.10.2"
    assert found.spec.model == "/data/models/Mistral-Small-24B"  # where it lies outside
    assert (found.spec.options.host, found.spec.options.port) == ("127.0.0.1", 8002)
    assert (found.cards, found.tensor_parallel_size) == ((0, 1), 2)
    judged = reviewed("llm-docker.service")
    assert set(rules(judged)) == {"in-container"}
    assert judged.corrected is None
    assert corrected_text(judged, Scope.SYSTEM) is None


def test_a_drop_in_wins_over_its_template() -> None:
    found = adopted("vllm@coder.service")
    assert found.spec.name == "coder"
    assert (found.spec.model, found.spec.options.port) == ("/data/models/coder", 8010)
    assert found.spec.options.max_model_len == 32768
    assert found.cards == (3,)


def test_a_template_with_its_environment_file() -> None:
    texts = {"/etc/vllm/x.env": "MODEL=/m/x\nPORT=8123\nEXTRA_ARGS=--max-model-len 4096 -tp 2\n"}
    found = read_unit(files("vllm@x.service"), texts.get)
    assert found is not None
    assert (found.spec.model, found.spec.options.port, found.spec.options.served_model_name) == ("/m/x", 8123, "x")
    assert (found.spec.options.max_model_len, found.tensor_parallel_size) == (4096, 2)
    assert found.missing_files == ()


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/env A=b /opt/v/bin/vllm serve /m --port 1234",
        "/usr/bin/numactl --cpunodebind=0 /opt/v/bin/vllm serve /m --port=1234",
        "/opt/conda/bin/conda run --no-capture-output -n v vllm serve /m --port 1234",
        "/bin/bash -c 'source /opt/v/bin/activate && cd /m; A=b exec vllm serve /m --port 1234'",
        '/bin/sh -ec "P=1234; exec /opt/v/bin/vllm serve /m --port $$P"',
        "/opt/v/bin/python3 -m vllm.entrypoints.openai.api_server --model /m --port 1234",
        "/opt/v/bin/python -m vllm.entrypoints.cli.main serve /m --port 1234",
        "/usr/bin/podman run --rm --device nvidia.com/gpu=all -p 1234:8000 docker.io/vllm/vllm-openai:latest --model "
        "/m",
        "/usr/bin/docker run --gpus all --ipc=host --network host x/vllm-openai /m --port 1234",
        "/usr/bin/docker run --gpus=all -p 0.0.0.0:1234:9/tcp --entrypoint vllm x/cuda serve /m --port 9",
    ],
)
def test_ways_to_start_vllm(line: str) -> None:
    found = command(line)
    assert found is not None
    assert (found.spec.model, found.spec.options.port) == ("/m", 1234)


@pytest.mark.parametrize(
    "line",
    ["/usr/bin/nginx -g x", "/bin/bash -c 'echo vllm'", "/usr/bin/docker stop vllm", "/opt/v/bin/vllm bench", ""],
)
def test_what_runs_no_vllm(line: str) -> None:
    assert command(line) is None


def test_cards_by_uuid_and_by_count() -> None:
    box = simulated_box("mixed").box
    uuids = [gpu.uuid or "" for gpu in box.gpus]
    assert all(uuids)
    text = f"[Service]\nEnvironment=CUDA_VISIBLE_DEVICES={uuids[2]},{uuids[0]}\nExecStart=/v/vllm serve /m -tp 2\n"
    found = read_unit(UnitFiles("x.service", (text,)), lambda _path: None, box)
    assert found is not None
    assert found.cards == (2, 0)
    counted = command("/usr/bin/docker run --gpus 2 vllm/vllm-openai --model /m -tp 2")
    assert counted is not None
    assert counted.cards == (0, 1)


def test_the_diff_says_no_key_and_the_unit_is_gpudecks() -> None:
    judged = reviewed("vllm-gemma.service")
    text = corrected_text(judged, Scope.SYSTEM)
    assert text is not None
    assert "sk-example" not in text
    assert spec_of(text) == judged.corrected
    changes = difference(files("vllm-gemma.service"), text, "gemma")
    assert "sk-example" not in changes
    assert "-  --api-key *** \\" in changes.splitlines()
    assert "+ExecStart=:/opt/conda/envs/vllm/bin/vllm serve" in changes


class _Systemd:
    scope = Scope.SYSTEM

    def services(self) -> dict[str, str]:
        return {
            "qwen-prod.service": "",
            "vllm@coder.service": "",
            "ssh.service": "",
            "gone.service": "/nowhere/gone.service",
        }

    def service(self, unit: str, name: str) -> UnitState | None:
        return UnitState(name, unit, Scope.SYSTEM, False, "active")


def test_services_that_run_vllm_are_found() -> None:
    found = find_others(_Systemd(), None, [UNITS])
    assert [each.state.unit for each in found] == ["qwen-prod.service", "vllm@coder.service"]
    assert all(not each.state.managed for each in found)
    assert found[0].state.spec is not None


def test_instances_that_are_set_up_are_known(tmp_path: Path) -> None:
    (tmp_path / "multi-user.target.wants").mkdir()
    (tmp_path / "multi-user.target.wants" / "vllm@a.service").touch()
    (tmp_path / "vllm@b.service.d").mkdir()
    (tmp_path / "vllm@.service.d").mkdir()
    assert set(instances([tmp_path, tmp_path / "none"])) == {"vllm@a.service", "vllm@b.service"}


def test_a_unit_of_gpudecks_own_is_no_others(tmp_path: Path) -> None:
    text = corrected_text(reviewed("qwen-prod.service"), Scope.SYSTEM)
    assert text is not None
    (tmp_path / "qwen-prod.service").write_text(text)
    assert find_others(_Systemd(), None, [tmp_path]) == []


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"]), max_size=12), max_size=12))
def test_any_command_is_survived(words: list[str]) -> None:
    for start in (
        "/v/vllm serve ",
        "/usr/bin/docker run ",
        "/bin/bash -c ",
        "/p -m vllm.entrypoints.openai.api_server ",
    ):
        found = command(start + " ".join(words))
        if found is not None:
            review(replace(found, cards=None), Ground(simulated_box("mixed").box))
