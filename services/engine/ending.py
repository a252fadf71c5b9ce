"""How an engine's last run ended, by what its runner knows: for logs that do not say it themselves."""

import signal

from gpudeck.services.engine.types import UnitState


def how_it_ended(unit: UnitState) -> str:
    """One sentence; "" where nothing went wrong.  Results are systemd's: systemd.service(5), $SERVICE_RESULT."""
    status = unit.exit_status
    match unit.result:
        case "exit-code" if status is not None:
            return f"It ended with exit status {status}: the end of its log may say why."
        case "signal" | "core-dump" if status:
            return f"It was killed by {_signal(status)}{_by_whom(status)}."
        case "oom-kill":
            return "The kernel killed it, since the machine's memory ran out: plan for less, or stop something else."
        case "timeout":
            return "It took longer to start or stop than it may, and was killed."
        case "start-limit-hit":
            return "It was started too often in a short time: mend it, then start it again."
        case "success" | "":
            return ""
    return f"It failed ({unit.result})."


def _signal(status: int) -> str:
    """systemd's statuses count signals from 128 on, as a shell does."""
    number = status - 128 if status > 128 else status
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _by_whom(status: int) -> str:
    if status % 128 == signal.SIGKILL:
        return ", as the kernel does where memory runs out: dmesg says whether it did"
    return ""
