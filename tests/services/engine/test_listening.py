"""Whose server answers on a port."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gpudeck.services.engine.listening import answers_itself
from gpudeck.services.engine.types import Scope, UnitState

SERVES = """\
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


def engine(pid: int | None) -> UnitState:
    return UnitState("tiny", "vllm-tiny.service", Scope.EMBEDDED, managed=True, active="active", main_pid=pid)


@pytest.fixture
def server() -> Iterator[tuple[int, int]]:
    """A server in a process of its own, as an engine of the embedded runner is: its pid and its port."""
    environment = {**os.environ, "GPUDECK_UNIT": "vllm-tiny.service"}
    with subprocess.Popen(
        [sys.executable, "-c", SERVES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.pid, int(process.stdout.readline())
        process.stdin.close()


def test_the_engines_own_process_answers(server: tuple[int, int]) -> None:
    pid, port = server
    assert answers_itself(engine(pid), port)


def test_a_child_of_the_engine_answers_for_it(server: tuple[int, int]) -> None:
    _pid, port = server
    assert answers_itself(engine(os.getpid()), port)


def test_another_program_on_the_port_does_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as others:
        assert not answers_itself(engine(1 if os.getpid() != 1 else 2), others.getsockname()[1])


def test_an_engine_without_a_process_does_not(server: tuple[int, int]) -> None:
    assert not answers_itself(engine(None), server[1])


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert not answers_itself(engine(os.getpid()), port)
