"""Simulated engines, started as processes and ended with the test."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class Engine:
    process: "subprocess.Popen[bytes]"
    port: int
    log_path: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8")

    def until(self, text: str) -> None:
        """Wait until the log has `text`."""
        deadline = time.monotonic() + 20
        while text not in self.log:
            assert self.process.poll() is None, f"it ended before {text!r}:\n{self.log}"
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.log}"
            time.sleep(0.01)

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)


@dataclass
class Engines:
    folder: Path
    loads: Path
    started: list[Engine] = field(default_factory=list)

    def start(self, *words: str, model: str = "hub/model", port: str = "", **environment: str) -> Engine:
        """Start one at fifty times the usual pace."""
        port = port or str(free_port())
        log_path = self.folder / f"log{len(self.started)}"
        with log_path.open("wb") as log:
            command = [sys.executable, "-m", "gpudeck.services.simulator", "serve", model, "--host", "127.0.0.1"]
            process = subprocess.Popen(
                [*command, "--port", port, *words],
                stdout=log,
                stderr=log,
                env=os.environ
                | {
                    "GPUDECK_SIMULATOR_SPEED": "50",
                    "GPUDECK_SIMULATED_LOADS": str(self.loads),
                    "CUDA_VISIBLE_DEVICES": "0",
                }
                | environment,
            )
        self.started.append(Engine(process, int(port), log_path))
        return self.started[-1]

    def ready(self, *words: str, model: str = "hub/model", **environment: str) -> Engine:
        engine = self.start(*words, model=model, **environment)
        engine.until("Application startup complete.")
        return engine


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Engines]:
    loads = tmp_path / "loads"
    loads.mkdir()
    engines = Engines(tmp_path, loads)
    yield engines
    for engine in engines.started:
        if engine.process.poll() is None:
            engine.process.kill()
        engine.process.wait()


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    return wait
