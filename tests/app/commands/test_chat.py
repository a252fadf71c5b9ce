"""`gpudeck chat` as a person or a script runs it, against a simulated engine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.simulator.conftest import Engine, Engines


def chat(*words: str, stdin: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "gpudeck.app", "chat", *words],
        env=os.environ | environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engines = Engines(tmp_path, tmp_path)
    yield engines.ready("--served-model-name", "demo", VLLM_API_KEY="secret")
    engines.started[0].process.kill()
    engines.started[0].process.wait()


def test_the_answer_alone_is_on_standard_output(engine: Engine) -> None:
    done = chat(engine.url, "Good morning", VLLM_API_KEY="secret")
    assert done.returncode == 0
    assert done.stdout.startswith("Hello! I am gpudeck's **simulated engine**")
    assert "> Good morning\n" in done.stdout
    assert "first token" in done.stderr


def test_the_prompt_from_standard_input(engine: Engine) -> None:
    done = chat(engine.url, "--max-tokens", "4", stdin="from a pipe", VLLM_API_KEY="secret")
    assert (done.returncode, done.stdout) == (0, "Hello! I am gpudeck'\n")
    assert "cut at max tokens" in done.stderr


@pytest.mark.parametrize(
    ("words", "key", "said"),
    [
        (("hello",), "", "wants an API key"),
        (("--model", "other", "hello"), "secret", "it serves demo"),
        (("--max-tokens", "999999999", "hello"), "secret", "max tokens can be at most"),
        ((" ",), "secret", "nothing to say"),
    ],
)
def test_refusals_are_one_sentence(engine: Engine, words: tuple[str, ...], key: str, said: str) -> None:
    done = chat(*words[:-1], engine.url, words[-1], VLLM_API_KEY=key)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_nothing_listens() -> None:
    done = chat("http://127.0.0.1:1", "hello")
    assert done.returncode == 1
    assert "Nothing answers at http://127.0.0.1:1" in done.stderr


def test_a_key_from_a_file_and_a_text_that_ends_the_answer(engine: Engine, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("HF_TOKEN=x\nVLLM_API_KEY=secret\n")
    done = chat(engine.url, "hello", "--key-file", str(key), "--stop", "simulated", VLLM_API_KEY="")
    assert done.returncode == 0
    assert done.stdout.startswith("Hello!")
    key.write_text("two\nlines\n")
    done = chat(engine.url, "hello", "--key-file", str(key))
    assert (done.returncode, done.stdout) == (1, "")
    assert "must hold the key alone" in done.stderr
