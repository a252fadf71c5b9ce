"""Who a process on a card is: its title, its user, and the rank that vLLM writes into the title."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpudeck.services.engine.ownership import engine_of

# vLLM's titles: VLLM::EngineCore, VLLM::EngineCore_DP1, VLLM::Worker_TP0, VLLM::Worker_DP0_PP1_TP3_EP3.  A part stands
# there only where that size is above one (v1/executor/multiproc_executor.py).
_TITLE = re.compile(r"VLLM::(?P<role>EngineCore|Worker)(?P<parts>(?:_[A-Z]+\d+)*)")
_PART = re.compile(r"_(DP|PP|TP)(\d+)")
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


class ProcessBook:
    """Titles and users of processes, each looked up again after a few seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[int, tuple[float, Person]] = {}

    def look_up(self, pid: int) -> Person:
        now = self._clock()
        known = self._known.get(pid)
        if known is not None and now - known[0] < _FRESH_S:
            return known[1]
        person = _person(pid)
        self._known[pid] = (now, person)
        return person

    def keep_only(self, pids: set[int]) -> None:
        """Forget the processes that are on no card any more."""
        for pid in self._known.keys() - pids:
            del self._known[pid]


def _person(pid: int) -> Person:
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            return Person(_title(process), _user(process), engine_of(pid))
    except psutil.Error:
        return Person(None, None)


def _title(process: Any) -> str:
    """The title that the process gave itself, else its name.

    The kernel cuts names after 15 characters, so that VLLM::Worker_TP0 stands whole in the command line only.
    """
    import psutil

    try:
        words = process.cmdline()
    except psutil.AccessDenied:
        words = []
    if words and words[0].startswith("VLLM::"):
        return str(words[0])
    return str(process.name())


def _user(process: Any) -> str | None:
    import psutil

    try:
        return str(process.username())
    except (psutil.Error, KeyError):
        return None
