"""What one line of an engine's log says of itself: its level, its worker, and where its parts stand.  Pure."""

import re
from enum import IntEnum

# A line longer than this is cut: a screen shows a few hundred characters of it, and one line must not fill the memory.
MAX_CHARACTERS = 32_768

# vLLM writes `(Worker_TP0 pid=71) INFO 12-01 01:17:56 [model.py:733] text`; before 0.10 the bracket in front is absent.
# uvicorn writes `INFO:     text`, torch's C++ `[W1201 01:23:17.6 file:68] text`, ranks `[rank0]: text`.
_LEVEL = re.compile(
    r"(?:\([^()]{1,80}\) |\[rank\d+\]:? ?)?"
    r"(?:(DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL)[ :]|\[?([DIWEF])\d{4} \d\d:\d\d"
    r"|(Traceback \(most recent call last\)|[\w.]*(?:Error|Exception|Exit)(?::|$)"
    r"|Fatal Python error|Segmentation fault)"
    r"|.{0,160}?\.py:\d+: \w*(Warning): )"
)
_PARTS = re.compile(
    r"(?P<worker>\([^()]{1,80}\) )?"
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL)(?=[ :]):? +)?"
    r"(?P<time>\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? )?"
    r"(?P<place>\[[\w./\-]+:\d+\] ?)?"
)
_BRIEF_PARTS = re.compile(
    r"(?P<time>\d\d:\d\d:\d\d|\x20{8}) (?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL) +"
    r"(?P<worker>(?:APIServer|EngineCore|(?:Vllm)?Worker)\w* +)?"
)
# Up to 0.9 all workers had one name, and a rank; Ray's have a pid alone; torch names the rank that a line is of.
_WORKER = re.compile(
    r"\((?P<named>[A-Za-z_]\w*(?: rank=\d+|(?<=RayWorkerWrapper) pid=\d+)?)[^()]*\) |\[(?P<rank>rank\d+)\]:? "
)


class Level(IntEnum):
    """How bad a line is; PLAIN is a line that does not say."""

    PLAIN = 0
    DEBUG = 1
    INFO = 2
    WARNING = 3
    ERROR = 4


_LEVELS = {
    "DEBUG": Level.DEBUG,
    "INFO": Level.INFO,
    "WARNING": Level.WARNING,
    "ERROR": Level.ERROR,
    "CRITICAL": Level.ERROR,
    "FATAL": Level.ERROR,
    "D": Level.DEBUG,
    "I": Level.INFO,
    "W": Level.WARNING,
    "E": Level.ERROR,
    "F": Level.ERROR,
}


def level_of(text: str, priority: int | None = None) -> Level:
    """The level that `text` states, else the one that a syslog `priority` below 5 means, else PLAIN."""
    match = _LEVEL.match(text)
    if match is not None:
        word, letter, _, warning = match.groups()
        if warning:
            return Level.WARNING
        return _LEVELS[word or letter] if word or letter else Level.ERROR
    if priority is not None and priority < 5:
        return Level.WARNING if priority == 4 else Level.ERROR
    return Level.PLAIN


def worker_of(text: str) -> str | None:
    """The process that wrote the line, by vLLM's name: "APIServer", "EngineCore_DP0", "Worker_TP1_PP0".

    "VllmWorker rank=1" and "RayWorkerWrapper pid=73" where many have one name, "rank0" where torch tells no more.
    """
    match = _WORKER.match(text)
    return (match["named"] or match["rank"]) if match else None


def parts_of(text: str) -> tuple[tuple[str, int, int], ...]:
    """Where worker, level, time and place stand in a line or its `brief` form: (part, start, end) of what is there."""
    match = _BRIEF_PARTS.match(text) or _PARTS.match(text)
    if match is None:
        return ()
    return tuple(
        (part, *match.span(part)) for part in ("worker", "level", "time", "place") if match.groupdict().get(part)
    )


def brief(text: str) -> str:
    """The line with its prefix made short, in columns: `01:23:24 ERROR   Worker_PP1 message`.

    vLLM's own prefix takes 70 columns and leaves an 80-column screen nothing of the message.  A line without that
    prefix stays as it is.
    """
    match = _PARTS.match(text)
    if match is None or match["level"] is None or (match["time"] is None and match["worker"] is None):
        return text
    # The HTTP server's own lines come without a time.
    time = match["time"][6:14] if match["time"] else " " * 8
    worker = worker_of(text)
    column = f"{worker:<10} " if worker else ""
    return f"{time} {match['level']:<7} {column}{text[match.end() :]}"


def last_state(text: str) -> str:
    """The line as a terminal would leave it: what the last carriage return began, and no longer than MAX_CHARACTERS.

    A progress bar writes its states one over the other; the journal hands on all of them as one line.
    """
    if "\r" in text:
        text = next((state for state in reversed(text.split("\r")) if state.strip()), "")
    if len(text) > MAX_CHARACTERS:
        text = f"{text[:MAX_CHARACTERS]} … {len(text) - MAX_CHARACTERS:,} more characters"
    return text
