"""Processes as /proc tells them: told apart from later ones of the same number, and found by what they belong to.

Standard library only: the supervisor of an engine runs on it too.
"""

import os
import select
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """`started` is the kernel's clock tick of its birth: with the pid it names one process of one boot for ever."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        """Whether it still runs; one that has ended and was not yet reaped does not."""
        stat = _stat(self.pid)
        return stat is not None and stat.started == self.started and stat.state not in "ZX"

    def send(self, number: int) -> None:
        """Send a signal, to this process and to no later one of its number."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        except OSError:  # a kernel before 5.3
            if self.alive:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, number)
            return
        try:
            if self.alive:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)

    def wait(self, seconds: float) -> bool:
        """Wait for its end; False where it still runs after `seconds`."""
        deadline = time.monotonic() + seconds
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        except OSError:
            while self.alive and time.monotonic() < deadline:
                time.sleep(0.05)
            return not self.alive
        try:
            if not self.alive:
                return True
            waiter = select.poll()
            waiter.register(handle, select.POLLIN)
            return bool(waiter.poll(max(deadline - time.monotonic(), 0) * 1000))
        finally:
            os.close(handle)


@dataclass(frozen=True, slots=True)
class _Stat:
    pid: int
    state: str
    parent: int
    session: int
    started: int


def boot_id() -> str:
    """The kernel's name for this boot: process numbers of another one mean nothing."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def process(pid: int) -> Process | None:
    """The process that has this number now."""
    stat = _stat(pid)
    return None if stat is None else Process(pid, stat.started)


def descendants(root: int) -> list[Process]:
    """Every living process below `root`, in no particular order."""
    children: dict[int, list[_Stat]] = {}
    for stat in _stats():
        children.setdefault(stat.parent, []).append(stat)
    found: list[Process] = []
    waiting = [root]
    while waiting:
        for stat in children.get(waiting.pop(), ()):
            waiting.append(stat.pid)
            if stat.state not in "ZX":
                found.append(Process(stat.pid, stat.started))
    return found


def belonging(root: Process, session: Process, marker: str) -> list[Process]:
    """Living processes below `root`, in the session that `session` began, or with the variable `marker` ("NAME=value").

    Three ways, since each can be lost: the tree when a parent is killed, the session by setsid, and the environment of
    vLLM's workers, whose process titles are written over it.
    """
    found = {each.pid: each for each in descendants(root.pid)} if root.alive else {}
    leader = _stat(session.pid)
    # A session's number is not given out again while the session has members.
    same_session = leader is None or leader.started == session.started
    for stat in _stats():
        if stat.state in "ZX" or stat.pid in found or stat.started < session.started:
            continue
        if (same_session and stat.session == session.pid) or _has_variable(stat.pid, marker.encode()):
            found[stat.pid] = Process(stat.pid, stat.started)
    return list(found.values())


def signal_all(processes: Iterable[Process], number: int) -> None:
    for each in processes:
        with suppress(PermissionError):
            each.send(number)


def title(pid: int) -> str:
    """The command of a process as it is written in the process table; "" where that can not be read."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _stats() -> Iterable[_Stat]:
    for entry in os.listdir(PROC):  # noqa: PTH208 - hundreds of names, of which no Path is needed
        if entry.isdigit() and (stat := _stat(int(entry))) is not None:
            yield stat


def _stat(pid: int) -> _Stat | None:
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may itself hold any character (proc_pid_stat(5)).
    fields = text[text.rindex(")") + 2 :].split()
    return _Stat(pid, fields[0], int(fields[1]), int(fields[3]), int(fields[19]))


def _has_variable(pid: int, marker: bytes) -> bool:
    try:
        return marker in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
