"""The file of keys: its text reads back, its other lines stay, and a running engine's own key is found first."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.adoption.syntax import environment_file
from gpudeck.services.engine import secrets_file
from gpudeck.services.engine.systemd import files
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.secrets import Secrets

KEY = Secrets((("VLLM_API_KEY", "k1"),))


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1))
def test_what_is_written_reads_back(value: str) -> None:
    assert environment_file(secrets_file.text_of({"VLLM_API_KEY": value})) == {"VLLM_API_KEY": value}


def test_other_variables_stay(tmp_path: Path) -> None:
    path = tmp_path / "x.env"
    path.write_text("# mine\nHF_TOKEN='hf_1'\nVLLM_API_KEY=old\nOTHER=a\\ b\n")
    text = secrets_file.changed_text(path, KEY)
    assert text is not None
    assert environment_file(text) == {"HF_TOKEN": "hf_1", "VLLM_API_KEY": "k1", "OTHER": "a b"}


def test_an_empty_value_takes_the_variable_out_and_the_last_one_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.env"
    path.write_text(secrets_file.text_of({"VLLM_API_KEY": "k1", "HF_TOKEN": "t"}))
    text = secrets_file.changed_text(path, Secrets((("VLLM_API_KEY", ""),)))
    assert text is not None
    assert environment_file(text) == {"HF_TOKEN": "t"}
    assert secrets_file.changed_text(path, Secrets((("VLLM_API_KEY", ""), ("HF_TOKEN", "")))) is None


def test_nobody_else_can_read_it_from_the_first_byte_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        modes.append(os.fstat(descriptor).st_mode & 0o777)
        real(descriptor)

    opened: list[int] = []
    real_open = tempfile.mkstemp

    def mkstemp(**how: object) -> tuple[int, str]:
        made = real_open(**how)  # type: ignore[call-overload]
        opened.append(os.fstat(made[0]).st_mode & 0o777)
        return made  # type: ignore[no-any-return]

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(tempfile, "mkstemp", mkstemp)
    path = tmp_path / "deep" / "x.env"
    old = os.umask(0)
    try:
        files.write(path, "VLLM_API_KEY=k\n", secrets_file.MODE)
    finally:
        os.umask(old)
    assert (opened, modes[0], path.stat().st_mode & 0o777) == ([0o600], 0o600, 0o600)


def test_what_can_not_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"can not be read \(Is a directory\)"):
        secrets_file.read(tmp_path)
    assert secrets_file.read(tmp_path / "none") == {}
    assert secrets_file.api_key(None, tmp_path) is None


def test_the_running_engines_key_is_found_before_its_files(tmp_path: Path) -> None:
    path = tmp_path / "x.env"
    path.write_text("VLLM_API_KEY=new\n")
    assert secrets_file.api_key(None, path) == "new"
    with running(VLLM_API_KEY="running") as pid:
        assert secrets_file.api_key(pid, path) == "running"
    with running("--api-key", "on the line") as pid:
        assert secrets_file.api_key(pid, path) == "on the line"
    with running() as pid:
        assert secrets_file.api_key(pid, path) == "new"


@contextmanager
def running(*words: str, **variables: str) -> Iterator[int]:
    waits = [sys.executable, "-c", "print(flush=True); input()", *words]
    environment = {name: value for name, value in os.environ.items() if name != "VLLM_API_KEY"} | variables
    with subprocess.Popen(waits, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate(b"\n")
