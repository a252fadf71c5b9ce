"""Finding vLLM in made-up homes, and ports with real sockets."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudeck.services.engine.program import find_vllm, free_port, port_in_use
from gpudeck.services.errors import OperatorError


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_the_given_command_wins(tmp_path: Path) -> None:
    other = program(tmp_path / "bin" / "vllm")
    given = program(tmp_path / "a place" / "vllm")
    environment = {"GPUDECK_VLLM": f"'{given}' --quiet", "PATH": str(other.parent)}
    assert find_vllm(environment) == (str(given), "--quiet")


@pytest.mark.parametrize("given", ["/no/such/vllm", "'unclosed", "vllm"])
def test_a_given_command_that_can_not_be_run(given: str, tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="GPUDECK_VLLM"):
        find_vllm({"GPUDECK_VLLM": given, "PATH": str(tmp_path)})


def test_on_the_path(tmp_path: Path) -> None:
    found = program(tmp_path / "bin" / "vllm")
    assert find_vllm({"PATH": f"/nonexistent:{found.parent}", "HOME": str(tmp_path)}) == (str(found),)


@pytest.mark.parametrize("place", ["vllm/.venv/bin", ".venv/bin", "miniconda3/envs/serving/bin"])
def test_in_the_usual_places(place: str, tmp_path: Path) -> None:
    found = program(tmp_path / place / "vllm")
    assert find_vllm({"PATH": "/nonexistent", "HOME": str(tmp_path)}) == (str(found),)


def test_what_is_no_program_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path / ".venv/bin/vllm").chmod(0o644)
    found = program(tmp_path / "miniforge3/envs/x/bin/vllm")
    assert find_vllm({"PATH": "/nonexistent", "HOME": str(tmp_path)}) == (str(found),)


def test_a_free_port(taken: int) -> None:
    port = free_port(taken)
    assert port > taken
    assert port_in_use("127.0.0.1", port) is None


def test_a_taken_port_names_its_holder(taken: int) -> None:
    sentence = port_in_use("127.0.0.1", taken)
    assert sentence is not None
    assert f"Port {taken} is already used by" in sentence
    assert f"(pid {os.getpid()})" in sentence
    assert port_in_use("0.0.0.0", taken) == sentence


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("127.0.0.1", 0, "0 is no port"),
        ("127.0.0.1", 70000, "70000 is no port"),
        ("192.0.2.1", 8000, "no address of this machine"),
        ("no such host", 8000, "no address of this machine"),
    ],
)
def test_where_nothing_can_listen(host: str, port: int, said: str) -> None:
    assert said in (port_in_use(host, port) or "")


def test_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    if find_vllm({"PATH": "/nonexistent"}) is not None:
        pytest.skip("this machine has a vLLM in a place outside of any home")
    assert find_vllm({"PATH": "/nonexistent", "HOME": str(tmp_path)}) is None
