"""Who a process on a card is: its title, its user, and the rank that vLLM writes into the title."""

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudeck.services.engine.ownership import container_of, engine_of

# vLLM's titles: VLLM::EngineCore, VLLM::EngineCore_DP1, VLLM::Worker_TP0, VLLM::Worker_DP0_PP1_TP3_EP3.  A part stands
# there only where that size is above one (v1/executor/multiproc_executor.py).
_TITLE = re.compile(r"VLLM::(?P<role>EngineCore|Worker)(?P<parts>(?:_[A-Z]+\d+)*)")
_PART = re.compile(r"_(DP|PP|TP)(\d+)")
_SECRET = re.compile(r"api-?key|token$|secret|password", re.IGNORECASE)  # --hf-token, --api-key, but --max-tokens
_LONGEST_COMMAND = 2000
_FRESH_S = 5.0  # a title is looked at again after this: vLLM adds the rank a while after the start


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where a vLLM process stands in its placement."""

    tp: int
    pp: int
    dp: int


def ranks_in(title: str) -> Ranks | None:
    """The ranks that a process title tells; None where it is none of vLLM's."""
    match = _TITLE.match(title)
    if match is None:
        return None
    parts = {name: int(number) for name, number in _PART.findall(match["parts"])}
    return Ranks(parts.get("TP", 0), parts.get("PP", 0), parts.get("DP", 0))


@dataclass(frozen=True, slots=True)
class Person:
    """What is known of a process; None where it can not be seen (another container)."""

    title: str | None
    user: str | None
    engine: str | None = None
    started_at: float | None = None  # seconds since the epoch
    command: str | None = None  # the whole command line, without keys and passwords
    container: str | None = None  # "container gemma"


STRANGER = Person("a process outside this container", None)


class ProcessBook:
    """Titles, users and engines of processes, each looked up again after a few seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, contained: bool | None = None) -> None:
        """`contained`: NVML's process numbers are the host's and not ours; found out where it is not given."""
        self._clock = clock
        self._contained = _in_a_container() if contained is None else contained
        self._known: dict[int, tuple[float, Person]] = {}

    def look_up(self, pid: int) -> Person:
        now = self._clock()
        known = self._known.get(pid)
        if known is not None and now - known[0] < _FRESH_S:
            return known[1]
        person = _person(pid)
        if self._contained and not _on_a_card(pid, person):
            person = STRANGER
        self._known[pid] = (now, person)
        return person

    def keep_only(self, pids: set[int]) -> None:
        """Forget the processes that are on no card any more."""
        for pid in self._known.keys() - pids:
            del self._known[pid]


def _in_a_container() -> bool:
    """Whether our process numbers are not the machine's: NVML tells the machine's in any container (nvitop #134)."""
    try:
        # PROC_PID_INIT_INO of Linux: the number of the first namespace of process numbers.
        return os.readlink("/proc/self/ns/pid") != "pid:[4026531836]"  # noqa: PTH115 (no file, but a name in brackets)
    except OSError:
        return False


def _on_a_card(pid: int, person: Person) -> bool:
    """Whether our process of that number can be the one that NVML means: it is an engine's, or has a card open."""
    if person.engine is not None or ranks_in(person.title or "") is not None:
        return True
    try:
        return any(str(file.readlink()).startswith("/dev/nvidia") for file in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _person(pid: int) -> Person:
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            words = _words(process)
            title = words[0] if words and words[0].startswith("VLLM::") else str(process.name())
            began, engine = process.create_time(), engine_of(pid)
            return Person(title, _user(process), engine, began, _command(words), container_of(pid))
    except psutil.Error:
        return Person(None, None)


def _words(process: Any) -> list[str]:
    """The command line; a title that the process gave itself is its first word.

    The kernel cuts names after 15 characters, so that VLLM::Worker_TP0 stands whole here only.
    """
    import psutil

    try:
        return [str(word) for word in process.cmdline()]
    except (psutil.AccessDenied, psutil.ZombieProcess):
        return []


def _command(words: list[str]) -> str | None:
    """The words in one line, without what follows --api-key and the like: screens and recordings are shown around."""
    told: list[str] = []
    secret = False
    for word in words:
        name, given, _ = word.partition("=")
        secret_name = _SECRET.search(name) is not None and name.startswith("-")
        told.append(f"{name}=***" if secret_name and given else "***" if secret and not word.startswith("-") else word)
        secret = secret_name and not given
    return " ".join(told).strip()[:_LONGEST_COMMAND] or None


def _user(process: Any) -> str | None:
    import psutil

    try:
        return str(process.username())
    except (psutil.Error, KeyError):
        return None
