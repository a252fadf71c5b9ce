from collections.abc import Mapping

import pytest

from gpudeck.services.engine.drift import Drift, DriftKind, Launched, command_text, drift_diff, runs_otherwise

SERVE = ("/opt/vllm/bin/vllm", "serve", "/models/a", "--port", "8000", "--max-model-len", "4096")
CARDS = {"CUDA_VISIBLE_DEVICES": "0,1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
STARTED = {**CARDS, "INVOCATION_ID": "0f"}


def process(*words: str, environment: Mapping[str, str] | None = None) -> Launched:
    return Launched(words, STARTED if environment is None else environment)


@pytest.mark.parametrize(
    "running",
    [
        process(*SERVE),
        process("/opt/vllm/bin/python3", *SERVE),  # a script's interpreter
        process("/usr/bin/python3", "-s", "/opt/vllm/bin/vllm", *SERVE[1:]),
        process("VLLM::APIServer"),  # vLLM wrote its title over it
        Launched(SERVE, None),  # another user's: only the command can be seen
        Launched((), None),
    ],
)
def test_what_runs_as_loaded(running: Launched) -> None:
    assert not runs_otherwise(Launched(SERVE, CARDS), running)


@pytest.mark.parametrize(
    "running",
    [
        process(*SERVE[:-1], "8192"),
        process(*SERVE, "--enforce-eager"),
        process(*SERVE[:-2]),
        process("/opt/vllm/bin/python3", *SERVE[:3], "--port", "8001", *SERVE[5:]),
        process(*SERVE, environment={**STARTED, "CUDA_VISIBLE_DEVICES": "1,0"}),
        process("VLLM::APIServer", environment={**STARTED, "CUDA_VISIBLE_DEVICES": "2"}),
        process(*SERVE, environment={"INVOCATION_ID": "0f"}),
    ],
)
def test_what_runs_otherwise(running: Launched) -> None:
    assert runs_otherwise(Launched(SERVE, CARDS), running)


def test_an_environment_that_was_written_over_tells_nothing() -> None:
    assert not runs_otherwise(Launched(SERVE, CARDS), process(*SERVE, environment={"EngineCore": ""}))


def test_a_shell_and_what_it_became_are_the_same() -> None:
    shell = ("/bin/bash", "-lc", "cd /srv && exec vllm serve /models/a --port 8000 --max-model-len 4096")
    assert not runs_otherwise(Launched(shell, CARDS), process("/opt/vllm/bin/python3", *SERVE))
    assert runs_otherwise(Launched(shell, CARDS), process("/opt/vllm/bin/python3", *SERVE[:-1], "1"))


def test_programs_that_are_no_vllm_are_compared_by_their_words() -> None:
    script = ("/srv/start.sh", "serve", "a b")
    assert not runs_otherwise(Launched(script, {}), process("/bin/sh", *script))
    assert runs_otherwise(Launched(script, {}), process("/bin/sh", "/srv/start.sh", "serve", "c"))


def test_a_script_that_became_another_program_tells_nothing() -> None:
    script = ("/srv/start.sh", "small")
    assert not runs_otherwise(Launched(script, {}), process("/opt/vllm/bin/python3", *SERVE))
    assert not runs_otherwise(Launched(script, {}), process("sleep", "1000"))


def test_a_diff_shows_one_option_a_line_and_no_secret() -> None:
    before = command_text(Launched((*SERVE, "--api-key", "sk-1", "--hf-token=hf_2"), CARDS))
    after = command_text(Launched((*SERVE[:-1], "8192"), {**CARDS, "CUDA_VISIBLE_DEVICES": "1"}))
    diff = drift_diff(Drift(DriftKind.RUNNING, before, after)).splitlines()
    assert "sk-1" not in before
    assert "hf_2" not in before
    assert diff[:2] == ["--- running", "+++ loaded"]
    assert {"-CUDA_VISIBLE_DEVICES=0,1", "+CUDA_VISIBLE_DEVICES=1"} <= set(diff)
    assert {"-  --max-model-len 4096", "+  --max-model-len 8192", "-  --api-key ***", "-  --hf-token=***"} <= set(diff)
    assert " /opt/vllm/bin/vllm serve /models/a" in diff


def test_foreign_words_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in drift_diff(Drift(DriftKind.ON_DISK, "a", "\x1b[2J"))


def test_a_key_that_was_put_into_a_unit_by_hand_is_not_told_in_its_diff() -> None:
    before = "[Service]\nExecStart=/bin/vllm serve /m\n"
    after = "[Service]\nEnvironment=VLLM_API_KEY=hush HF_HOME=/hf\nExecStart=/bin/vllm serve /m --api_key 'k hush'\n"
    told = drift_diff(Drift(DriftKind.BY_HAND, before, after))
    assert "hush" not in told
    assert "+Environment=VLLM_API_KEY=*** HF_HOME=/hf" in told
