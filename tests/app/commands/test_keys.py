"""Keys on the command line: from files, prompts and the environment; the engine's own commands then use them."""

import getpass
import io
import sys
from pathlib import Path

import pytest

from tests.rigs.as_command import Gpudeck
from tests.rigs.at_the_panel import free_port

MODEL = "demo-llama-3.1-8b"
KEY = "k-hush-4711"


def install(gpudeck: Gpudeck, *words: str) -> str:
    port = str(free_port())
    done = gpudeck("install", "--demo", MODEL, "--stage", "1", "--name", "keyed", "--port", port, "--yes", *words)
    assert done.code == 0, done.err
    assert KEY not in done.out + done.err
    return done.out


def kept(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file() and KEY in path.read_text(errors="replace")]


def test_the_whole_road_with_a_key_from_a_file(
    gpudeck: Gpudeck, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    assert "and VLLM_API_KEY into" in install(gpudeck, "--api-key-file", str(file))
    [secrets] = kept(home)
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert gpudeck("start", "keyed", "--demo").code == 0
    done = gpudeck("chat", "keyed", "hello", "--demo")
    assert (done.code, bool(done.out.strip())) == (0, True)
    assert "key " not in gpudeck("status", "keyed", "--demo").out
    for words in (("engines", "--json"), ("status", "keyed"), ("logs", "keyed"), ("status", "keyed", "--json")):
        done = gpudeck(*words, "--demo")
        assert KEY not in done.out + done.err
    # The file and the process can not be read: what is said is what to do.
    monkeypatch.setattr("gpudeck.services.engine.secrets_file.api_key", lambda _pid, _path: None)
    done = gpudeck("chat", "keyed", "hello", "--demo")
    assert (done.code, "wants an API key (401): set VLLM_API_KEY" in done.err) == (1, True)
    assert "  key     http://127.0.0.1" in gpudeck("status", "keyed", "--demo").out
    monkeypatch.setenv("VLLM_API_KEY", "wrong")
    assert "refused the API key (401)" in gpudeck("status", "keyed", "--demo").out
    assert gpudeck("remove", "keyed", "--demo", "--yes").code == 0
    assert kept(home) == []


def test_from_standard_input_and_from_the_environment(
    gpudeck: Gpudeck, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{KEY}\n"))
    assert "and HF_TOKEN into" in install(gpudeck, "--hf-token-file", "-")
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    assert "and VLLM_API_KEY into" in install(gpudeck, "--keys-from-env")
    [secrets] = kept(home)
    assert secrets.read_text().count(KEY) == 2


def test_on_a_terminal_it_is_asked_for_unseen(gpudeck: Gpudeck, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Typed(io.StringIO):
        def isatty(self) -> bool:
            return True

    asked: list[str] = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        return KEY

    monkeypatch.setattr(sys, "stdin", Typed())
    monkeypatch.setattr(getpass, "getpass", typed)
    install(gpudeck, "--api-key-file", "-")
    assert asked == ["VLLM_API_KEY (not shown): "]
    assert len(kept(home)) == 1


def test_start_takes_a_new_key(gpudeck: Gpudeck, home: Path, tmp_path: Path) -> None:
    install(gpudeck)
    file = tmp_path / "key"
    file.write_text(KEY)
    assert gpudeck("start", "keyed", "--demo", "--api-key-file", str(file)).code == 0
    assert gpudeck("chat", "keyed", "hello", "--demo").code == 0
    again = gpudeck("start", "keyed", "--demo", "--api-key-file", str(file))
    assert "gpudeck restart keyed --demo lets it read its keys." in again.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--api-key-file", "/nowhere"), "--api-key-file: /nowhere can not be read (No such file or directory)"),
        (("--hf-token-file", "/dev/null"), "The value for HF_TOKEN is empty"),
        (("--keys-from-env",), "--keys-from-env finds neither VLLM_API_KEY nor HF_TOKEN in the environment."),
    ],
)
def test_what_is_no_key_is_one_sentence_and_writes_nothing(
    gpudeck: Gpudeck, home: Path, words: tuple[str, ...], sentence: str
) -> None:
    done = gpudeck("install", "--demo", MODEL, "--stage", "1", "--name", "keyed", "--yes", *words)
    assert done.code == 1
    assert sentence in done.err
    assert not list(home.rglob("command.json"))


def test_a_key_among_the_options_is_blocked_with_the_way_out(gpudeck: Gpudeck) -> None:
    done = gpudeck("install", "--demo", MODEL, "--stage", "1", "--yes", "--force", "--", "--api_key", KEY)
    assert done.code == 1
    assert "--api-key-file" in done.err
    assert KEY not in done.out + done.err
