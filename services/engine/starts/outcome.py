"""A start in a few words: when it was, and how it ended."""

import signal
from datetime import datetime

from gpudeck.services.engine.ending import status_words
from gpudeck.services.engine.starts.times import seconds_words
from gpudeck.services.engine.types import Start
from gpudeck.services.text import printable


def outcome_of(result: str, *, killed: bool, status: int | None, asked: bool) -> tuple[str, bool]:
    """How a start ended, in a few words, and whether it failed.

    `result` is systemd's (systemd.service(5), $SERVICE_RESULT), `status` the main process's exit status or, where it
    was `killed`, the signal's number.  A server that ends unasked has failed, whatever its exit status: vLLM exits
    with 0 when its core dies.
    """
    if asked and result == "success":
        return "stopped", False
    match result:
        case "success" if status is None:
            return "ended by itself", True
        case "success" | "exit-code" if not killed:
            return f"ended with {status_words(status or 0)}", True
        case "success" | "signal" | "core-dump" | "exit-code":
            return f"killed by {_signal(status)}", True
        case "oom-kill":
            return "killed by the kernel, since memory ran out", True
        case "timeout":
            return "took too long to start or stop, and was killed", True
    return f"failed ({result})", True


def _signal(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return "a signal" if number is None else f"signal {number}"


def start_words(start: Start, *, runs: bool) -> str:
    """A start in a few words, its time in the operator's time zone."""
    if start.at is None:
        began = "began before what is kept"
    else:
        began = f"{datetime.fromtimestamp(start.at).astimezone():%d %b %H:%M:%S}"
    if runs:
        return f"{began}  runs now"
    if start.ended is None:
        return f"{began}  its end is not told"
    lasted = start.ended - start.at if start.at is not None else 0.0
    return f"{began}  {printable(start.outcome)}{f' after {seconds_words(lasted)}' if lasted >= 1 else ''}"
