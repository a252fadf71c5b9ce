"""Whether an engine's log says the same error over and over."""

import re
from collections import Counter
from collections.abc import Iterable

from gpudeck.services.check.types import Item, Outcome
from gpudeck.services.engine.loglines import take_apart
from gpudeck.services.text import printable

REPEATED = 3  # times from which an error is one that comes again and again
_LOUD = ("ERROR", "CRITICAL")
# Errors of the level that hand-written code, NCCL and CUDA write without one.
_WITHOUT_LEVEL = re.compile(r"^(?:[A-Za-z_.]+(?:Error|Exception)\b:|.*\bNCCL WARN\b|.*\bCUDA error\b)")
_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")
_SHOWN = 160  # characters


def log_item(lines: Iterable[str]) -> Item:
    """The line about the log of a run: the error that repeats most, or that none does.

    Lines are the same where they differ in numbers alone, and come again where their stamps differ: the lines of one
    traceback repeat each other within one second.
    """
    counted: Counter[str] = Counter()
    told: set[tuple[str, str]] = set()
    first: dict[str, str] = {}
    seen = 0
    for line in lines:
        seen += 1
        parts = take_apart(line)
        if parts.level not in _LOUD and not (parts.level is None and _WITHOUT_LEVEL.match(parts.text)):
            continue
        key = f"{parts.writer} {parts.place or ''} {_VARYING.sub('#', parts.text)}"
        if parts.stamp is not None:
            if (key, parts.stamp) in told:
                continue
            told.add((key, parts.stamp))
        counted[key] += 1
        first.setdefault(key, parts.text)
    title = "log free of repeating errors"
    if not seen:
        return Item("log", title, Outcome.SKIPPED, "the log of this run is empty, or no longer kept")
    key, times = next(iter(counted.most_common(1)), ("", 0))
    if times >= REPEATED:
        text = printable(first[key])
        text = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        return Item("log", title, Outcome.FAILED, f"{times} times: {text}")
    if counted:
        text = printable(first[key])[:_SHOWN]
        return Item("log", title, Outcome.NOTE, f"{len(counted)} kinds of error, none of them repeating: {text}")
    return Item("log", title, Outcome.PASSED, f"{seen:,} lines")
