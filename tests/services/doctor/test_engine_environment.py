"""Environments asked for their versions: real ones, and programs that are none."""

import sys
from pathlib import Path

import pytest

from gpudeck.services.doctor.engine_environment import Pin, Versions, ask, python_of
from gpudeck.services.errors import OperatorError
from tests.services.doctor.environments import environment

PACKAGES = {"vllm": "0.24.0", "torch": "2.11.0+cu130", "nvidia-nccl-cu13": "2.28.9"}
PYTHON = sys.version.split()[0]


def test_versions_are_read_without_loading_torch(tmp_path: Path) -> None:
    program = environment(tmp_path / "env", PACKAGES, "13.0", ["torch==2.11.0", "numba==0.65.0", "numpy>=1"])
    assert ask([str(program)]) == Versions(
        PYTHON,
        "0.24.0",
        "2.11.0+cu130",
        "13.0",
        "2.28.9",
        (Pin("vllm", "torch", "2.11.0", "2.11.0+cu130"), Pin("vllm", "numba", "0.65.0", None)),
    )


def test_a_build_for_cpus_has_no_cuda(tmp_path: Path) -> None:
    program = environment(tmp_path / "env", {"vllm": "0.32.0+cpu", "torch": "2.13.0+cpu"})
    assert ask([str(program)]) == Versions(PYTHON, "0.32.0+cpu", "2.13.0+cpu", None, None)


def test_an_environment_without_vllm_is_told_as_it_is(tmp_path: Path) -> None:
    assert ask([str(environment(tmp_path / "env", {}))]) == Versions(PYTHON, None, None, None, None)


def test_a_python_that_hangs_is_given_up(tmp_path: Path) -> None:
    slow = _script(tmp_path / "python3", "#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(OperatorError, match=r"did not tell its versions within 0\.1 s"):
        ask([str(slow)], seconds=0.1)


def test_a_python_that_fails_says_why_in_its_own_last_words(tmp_path: Path) -> None:
    broken = _script(tmp_path / "python3", "#!/bin/sh\necho 'no module named \x1b[2Jencodings' >&2\nexit 1\n")
    with pytest.raises(OperatorError, match=r"does not tell its versions \(no module named \^\[\[2Jencodings\)"):
        ask([str(broken)])


@pytest.mark.parametrize(
    ("first_lines", "python"),
    [
        (f"#!{sys.executable}\n", sys.executable),
        (f"#!{sys.executable} -s\nimport x\n", sys.executable),
        (f"#!/bin/sh\n'''exec' {sys.executable} \"$0\" \"$@\"\n' '''\n", sys.executable),
        (f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n", sys.executable),
        ("#!/bin/sh\nexec docker run vllm\n", None),
        ("#!/nowhere/python3\n", None),
        ("\x7fELF", None),
        ("", None),
    ],
)
def test_the_interpreter_is_the_scripts(tmp_path: Path, first_lines: str, python: str | None) -> None:
    program = _script(tmp_path / "vllm", first_lines)
    if python is not None:
        assert python_of([str(program)]) == (python,)
    else:
        with pytest.raises(OperatorError, match="no Python script"):
            python_of([str(program)])


def test_env_finds_the_interpreter_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = _script(tmp_path / "python9", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert python_of([str(_script(tmp_path / "vllm", "#!/usr/bin/env python9\n"))]) == (str(python),)


def test_an_interpreter_named_itself_is_taken() -> None:
    assert python_of([sys.executable, "-m", "vllm.entrypoints.cli.main"]) == (sys.executable,)


def _script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path
