"""One line of vLLM's log taken apart: who wrote it, when, how loud, and what it says."""

import re
from dataclasses import dataclass
from datetime import datetime

# Colours, where VLLM_LOGGING_COLOR or a terminal brought them in.
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

# "(Worker_PP0_TP1 pid=73) ", "(VllmWorker rank=0 pid=73) " of 0.8, "(RayWorkerWrapper pid=73, ip=10.0.0.1) ".
_WRITER = re.compile(r"\((?P<writer>[A-Za-z][\w-]*(?: rank=\d+)?) pid=(?P<pid>\d+)(?:, ip=[\w.:]+)?\) ?")

# "INFO 12-01 02:07:08 [core.py:114] …"; up to 0.7 the place stood without its opening bracket.
_LEVELLED = re.compile(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<stamp>\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? "
    r"\[?(?P<place>[\w./-]+:\d+)\] ?"
)
_UVICORN = re.compile(r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL): +")


@dataclass(frozen=True, slots=True)
class LogParts:
    """`writer` is vLLM's own name of the process ("APIServer", "EngineCore_DP0", "Worker_PP1_TP0"), "" without one."""

    text: str  # what follows the prefixes
    writer: str = ""
    pid: int | None = None
    level: str | None = None  # DEBUG, INFO, WARNING, ERROR, CRITICAL; None for tracebacks, bars and foreign lines
    stamp: str | None = None  # "12-01 02:07:08": local time, without a year
    place: str | None = None  # "core.py:114"


def take_apart(line: str) -> LogParts:
    """Split a line into its parts; a line of another form is all `text`.

    vLLM 0.6 to 0.33, with or without colours.  The bars of tqdm follow the writer's name behind a line break or a
    carriage return, so that they have no writer.
    """
    if "\x1b" in line:
        line = _ESCAPES.sub("", line)
    writer, pid, position = "", None, 0
    if found := _WRITER.match(line):
        writer, pid, position = found["writer"], int(found["pid"]), found.end()
    if levelled := _LEVELLED.match(line, position):
        return LogParts(line[levelled.end() :], writer, pid, levelled["level"], levelled["stamp"], levelled["place"])
    if uvicorn := _UVICORN.match(line, position):
        return LogParts(line[uvicorn.end() :], writer, pid, uvicorn["level"])
    return LogParts(line[position:], writer, pid)


def stamped_at(stamp: str, near: float) -> float | None:
    """Seconds since the epoch of a `stamp` (local time) in the year nearest to `near`; None if it is no date."""
    here = datetime.fromtimestamp(near).astimezone()
    moments: list[float] = []
    for year in (here.year - 1, here.year, here.year + 1):
        try:
            moments.append(datetime.strptime(f"{year}-{stamp}", "%Y-%m-%d %H:%M:%S").astimezone().timestamp())
        except ValueError:  # 29 February in another year, or no date at all
            continue
    return min(moments, key=lambda moment: abs(moment - near), default=None)
