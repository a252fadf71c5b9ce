"""Faults at random, several at a time: the panel goes on, and afterwards agrees with what runs and holds nothing.

A schedule is drawn from its number.  The first few run here, all by command:

    GPUDECK_SCHEDULES=1000 .venv/bin/python -m pytest -n 2 -m panel tests/app/test_fault_schedules.py

and one alone, as a failure names it, by `-k 'schedule[17]'`.
"""

import asyncio
import errno
import gc
import os
import random
import signal
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gpudeck.services.engine import choose
from gpudeck.services.engine.enginedir import EngineDirectory
from gpudeck.services.engine.types import Runner, Scope
from gpudeck.services.errors import OperatorError
from tests.app.panels import Desk, panel, real
from tests.app.test_panel_engines import small
from tests.rigs.fakenvml.fixtures import FakeNvml, PlayedBox
from tests.rigs.small_engines import until
from tests.services.box.boxes import busy, pair

pytestmark = pytest.mark.panel

_ACTS = 14
_NAMES = ("one", "two", "three")
_KEYS = (*"12345zjkvlwu?", "home", "end", "down", "up", "tab", "escape")
_SIZES = ((80, 24), (160, 50), (40, 10), (200, 60), (20, 5), (120, 40))
_SCRIPTS = (
    "echo up; exec sleep 1000",
    "echo up; sleep 0.3; exit 3",
    "trap '' TERM; echo deaf; sleep 0.2; exit 0",
    "while :; do echo '\033[31mline\r 50%|##|'; sleep 0.01; done",
    "echo 'Traceback (most recent call last):'; echo '  x'; echo 'RuntimeError: CUDA out of memory'; exit 1",
)


class Schedule:
    """One run of faults; whatever an operator's own acts are refused for is no failure."""

    def __init__(self, number: int, folder: Path, runner: Runner, box: PlayedBox) -> None:
        self.random = random.Random(number)
        self.folder = folder
        self.runner = runner
        self.box = box
        self.full = False  # the disk
        self.done: list[str] = []

    async def run(self, desk: Desk) -> None:
        acts: tuple[Callable[[], object], ...] = (
            *(self.install, self.start, self.start, self.stop, self.remove, self.kill, self.kill_supervisor),
            *(self.rotate, self.lose_card, self.lose_all, self.find_cards, self.fill_disk, self.free_disk),
        )
        for name in _NAMES[:2]:
            self.install(name)
        for _ in range(_ACTS):
            act = self.random.choice(acts)
            self.done.append(act.__name__)
            with suppress(OperatorError):
                await asyncio.to_thread(act)
            for _ in range(self.random.randrange(3)):
                key = self.random.choice(_KEYS)
                self.done.append(key)
                await desk.press(key)
            if self.random.random() < 0.3:
                await desk.pilot.resize_terminal(*self.random.choice(_SIZES))
        self.find_cards()
        self.free_disk()

    def install(self, name: str = "") -> None:
        name = name or self.random.choice(_NAMES)
        small(self.folder / f"{name}-{self.random.random()}", name, self.runner, self.random.choice(_SCRIPTS))

    def start(self) -> None:
        self.runner.start(self.random.choice(_NAMES))

    def stop(self) -> None:
        self.runner.stop(self.random.choice(_NAMES))

    def remove(self) -> None:
        self.runner.remove(self.random.choice(_NAMES))

    def kill(self) -> None:
        for state in self.runner.engines()[:1]:
            if state.main_pid:
                with suppress(ProcessLookupError):
                    os.kill(state.main_pid, signal.SIGKILL)

    def kill_supervisor(self) -> None:
        for files in self._files():
            run = files.run()
            if run is not None and run.supervisor.alive:
                run.supervisor.send(signal.SIGKILL)
                return

    def rotate(self) -> None:
        for files in self._files():
            with suppress(OSError):
                os.truncate(files.log, 0)

    def _files(self) -> list[EngineDirectory]:
        found = [EngineDirectory(path.parent) for path in Path(os.environ["HOME"]).rglob("command.json")]
        self.random.shuffle(found)
        return found

    def lose_card(self) -> None:
        fault = self.random.choice(["!GPU_IS_LOST", "!TIMEOUT", "!UNKNOWN"])
        self.box.change({f"gpu.{self.random.randrange(2)}.fault": fault})

    def lose_all(self) -> None:
        self.box.change({f"gpu.{card}.fault": "!GPU_IS_LOST" for card in range(2)})

    def find_cards(self) -> None:
        self.box.change({f"gpu.{card}.fault": None for card in range(2)})

    def fill_disk(self) -> None:
        self.full = True

    def free_disk(self) -> None:
        self.full = False


def agrees(desk: Desk, runner: Runner) -> bool:
    """Whether the screen has the engines that there are, each in its runner's state."""
    states = {state.name: state for state in runner.engines()}
    words = {"active": ("starting", "ready"), "inactive": ("stopped",), "failed": ("failed",)}
    return set(desk.panel.state.engines) == set(states) and all(
        desk.word(name) in words.get(state.active, ()) for name, state in states.items()
    )


def held() -> tuple[int, int]:
    """Descriptors and threads of this process, without those that asyncio keeps to lend out."""
    gc.collect()
    threads = [thread for thread in threading.enumerate() if not thread.name.startswith("asyncio_")]
    return len(list(Path("/proc/self/fd").iterdir())), len(threads)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(int(os.environ.get("GPUDECK_SCHEDULES", "4"))))
async def test_schedule(
    number: int, home: Path, tmp_path: Path, fake_nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = fake_nvml(pair(), (busy(0), busy(1)))
    runner = choose.open_runner(scope=Scope.EMBEDDED)
    schedule = Schedule(number, tmp_path, runner, box)
    make = tempfile.mkstemp

    def mkstemp(*words: Any, **named: Any) -> tuple[int, str]:
        if schedule.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return make(*words, **named)

    monkeypatch.setattr(tempfile, "mkstemp", mkstemp)
    before, tasks = held(), len(asyncio.all_tasks())
    try:
        async with panel(real()) as desk:
            await schedule.run(desk)
            await desk.pilot.resize_terminal(160, 50)
            await desk.press("escape", "escape", "escape")
            await desk.until(lambda: agrees(desk, runner), "agreement with what runs")
            await desk.until(
                lambda: desk.panel.state.snapshot and not any(r.fault for r in desk.panel.state.snapshot.readings),
                "cards that are well again",
            )
        assert len(asyncio.all_tasks()) <= tasks
        await asyncio.to_thread(
            until,
            "descriptors or threads are left",
            lambda: all(now <= was for now, was in zip(held(), before, strict=True)),
        )
    except BaseException:
        print("schedule", number, *schedule.done)
        raise
    finally:
        runner.close()
