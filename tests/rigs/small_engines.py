"""Small real programs in the place of vLLM, for tests of what runs engines rather than of engines."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from gpudeck.services.engine.types import LogLine, UnitState
from gpudeck.services.plan.types import EngineSpec, Placement

inside_systemd = [
    pytest.mark.systemd,
    pytest.mark.skipif("WITH_SYSTEMD" not in os.environ, reason="run it by tests/rigs/with_systemd"),
]

Value = TypeVar("Value")


def engine(folder: Path, name: str, script: str, **more: object) -> EngineSpec:
    """An engine whose program is this shell script; the words that vLLM would get are its arguments."""
    program = folder / f"{name}.sh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    folder.chmod(0o755)
    fields: dict[str, object] = {"model": "/models/none", "placement": Placement(((0,),)), "program": (str(program),)}
    return EngineSpec(name, **(fields | more))  # type: ignore[arg-type]


def until(what: str, look: Callable[[], Value], seconds: float = 20.0) -> Value:
    """Wait until `look` gives something true, and return that; fail with `what` after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, what
        time.sleep(0.01)


def processes(name: str) -> list[int]:
    """The pids of what runs under this name; inside the booted systemd that is only what the tests started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if path.read_text() == f"{name}\n":
                found.append(int(path.parent.name))
    return found


class Heard:
    """What a watcher was told, in order."""

    def __init__(self) -> None:
        self.states: list[UnitState] = []
        self.threads: set[str] = set()

    def __call__(self, state: UnitState) -> None:
        self.states.append(state)
        self.threads.add(threading.current_thread().name)

    def of(self, name: str) -> list[UnitState]:
        return [state for state in self.states if state.name == name]

    def active(self, name: str) -> list[str]:
        """The engine's ActiveStates, each run of equal ones once."""
        told = [state.active for state in self.of(name)]
        return [state for place, state in enumerate(told) if place == 0 or told[place - 1] != state]

    def last(self, name: str) -> UnitState | None:
        told = self.of(name)
        return told[-1] if told else None


class Lines:
    """What a follower delivered, in order."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.longest_batch = 0

    def __call__(self, batch: list[LogLine]) -> None:
        self.longest_batch = max(self.longest_batch, len(batch))
        self.lines.extend(batch)

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self.lines]
