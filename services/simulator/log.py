"""Lines in the form that vLLM logs them in."""

import sys
import threading
from datetime import datetime

from gpudeck.services.simulator.workers import Worker

_guard = threading.Lock()


def info(writer: str, pid: int, place: str, text: str, level: str = "INFO") -> None:
    """One line of vLLM's logger; `place` is the source line that the real text comes from."""
    stamp = datetime.now().astimezone().strftime("%m-%d %H:%M:%S")
    _write(f"({writer} pid={pid}) {level} {stamp} [{place}] {text}\n")


def uvicorn(pid: int, text: str) -> None:
    _write(f"(APIServer pid={pid}) INFO:     {text}\n")


def raw(writer: str, pid: int, text: str) -> None:
    """A line without time and level, as tracebacks have them."""
    _write(f"({writer} pid={pid}) {text}\n")


def bar(worker: Worker, label: str, done: int, total: int, *, weights: bool = False) -> None:
    """A stroke of tqdm's bar: a carriage return before each, a line break after the last, the writer's name once."""
    percent = 100 * done // max(total, 1)
    if weights:
        drawn = f"{label}: {percent:3d}% Completed | {done}/{total}"
    else:
        full = percent // 10
        drawn = f"{label}: {percent:3d}%|{'█' * full}{' ' * (10 - full)}| {done}/{total}"
    writer = f"({worker.name} pid={worker.pid}) " if done == 0 else ""
    _write(f"{writer}\r{drawn}" + ("\n" if done >= total else ""))


def _write(text: str) -> None:
    with _guard:
        sys.stderr.write(text)
        sys.stderr.flush()
