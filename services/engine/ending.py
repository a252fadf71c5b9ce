"""How an engine's last run ended, by what its runner knows: for logs that do not say it themselves."""

import signal

from gpudeck.services.engine.types import UnitState

_LAST_SIGNAL = 64  # SIGRTMAX on Linux
_SIGNALLED = 128  # exit statuses from here on stand for signals, as in a shell


# systemd.exec(5), "Process Exit Codes": what systemd could not do before the program's first word.
_BEFORE_IT_RAN = {
    200: "its working directory can not be entered",
    203: "its program can not be executed: look whether the path in ExecStart is there and may be run",
    216: "its group is not known",
    217: "its user is not known",
    226: "its view of the file system can not be set up",
    238: "its state directory can not be made",
    239: "its cache directory can not be made",
}


def how_it_ended(unit: UnitState) -> str:
    """One sentence; "" where nothing went wrong.  Results are systemd's: systemd.service(5), $SERVICE_RESULT."""
    if unit.gave_up:
        return (
            f"It crashed {unit.restarts + 1} times in a row, so that systemd gave up: mend it, then start it again."
            if unit.restarts
            else "It was started too often in a short time: mend it, then start it again."
        )
    status = unit.exit_status
    match unit.result:
        case "exit-code" if status in _BEFORE_IT_RAN:
            return f"systemd could not start it (exit status {status}): {_BEFORE_IT_RAN[status]}."
        case "exit-code" if status is not None:
            return f"It ended with {status_words(status)}: the end of its log may say why."
        case "signal" | "core-dump" if status:
            return f"It was killed by {_signal(status)}{_by_whom(status)}."
        case "oom-kill":
            return "The kernel killed it, since the machine's memory ran out: plan for less, or stop something else."
        case "timeout":
            return "It took longer to start or stop than it may, and was killed."
        case "success" | "":
            return ""
    return f"It failed ({unit.result})."


def status_words(status: int) -> str:
    """An exit status in words: "exit status 3", "SIGTERM (exit status 143)"."""
    # Above the signals' statuses stand those of systemd and of programs themselves.
    name = _signal(status) if _SIGNALLED < status <= _SIGNALLED + _LAST_SIGNAL else ""
    return f"{name} (exit status {status})" if name else f"exit status {status}"


def _signal(status: int) -> str:
    try:
        return signal.Signals(status - _SIGNALLED).name
    except ValueError:
        return f"signal {status - _SIGNALLED}"


def _by_whom(status: int) -> str:
    if status - _SIGNALLED == signal.SIGKILL:
        return ", as the kernel does where memory runs out: dmesg says whether it did"
    return ""
