"""When an engine is restarted by the clock: the units of a systemd timer, as text.  Pure.

A timer can only start a unit, so that a second one restarts the engine: systemd.timer(5), systemctl(1) try-restart,
which leaves an engine alone that does not run.  Neither is called like an engine, nor does the polkit rule name them.
"""

from dataclasses import dataclass

from gpudeck.services.engine.quoting import command, to_end_of_line
from gpudeck.services.engine.types import Scope

SECTION = "X-Gpudeck"
_KEY = "Restarts="
_WHEN = "OnCalendar="


@dataclass(frozen=True, slots=True)
class RestartUnits:
    """The two units, by name and text."""

    timer: str
    timer_text: str
    service: str
    service_text: str


def timer_of(unit: str) -> str:
    """The timer that restarts this unit."""
    return f"gpudeck-restart-{unit.removesuffix('.service')}.timer"


def service_of(unit: str) -> str:
    return f"gpudeck-restart-{unit}"


def restart_units(unit: str, when: str, scope: Scope, systemctl: str) -> RestartUnits:
    """Both units for a calendar event (systemd.time(7)); `systemctl` is the program's path.

    Raises OperatorError for text that no unit can carry.
    """
    asked = [systemctl, *(["--user"] if scope is Scope.USER else [])]
    runs = command([*asked, "is-active", "--quiet", unit])
    # A restart by the clock is none of the crashes that systemd counts.
    forget, restart = command([*asked, "reset-failed", unit]), command([*asked, "--no-block", "try-restart", unit])
    head = f"# Written by gpudeck: restarts {unit} by the clock, where it runs.\n"
    mark = f"\n[{SECTION}]\n{_KEY}{unit}\n"
    timer = (
        f"{head}\n[Unit]\nDescription=When {unit} is restarted\n\n"
        f"[Timer]\n{_WHEN}{to_end_of_line(when)}\nAccuracySec=1s\n\n[Install]\nWantedBy=timers.target\n{mark}"
    )
    service = (
        f"{head}\n[Unit]\nDescription=Restart of {unit} by the clock\n\n"
        f"[Service]\nType=oneshot\nExecCondition={runs}\nExecStart={forget}\nExecStart={restart}\n{mark}"
    )
    return RestartUnits(timer_of(unit), timer, service_of(unit), service)


def when_of(text: str, unit: str) -> str:
    """The calendar event in a timer that gpudeck wrote for this unit; "" for any other text."""
    if f"{_KEY}{unit}" not in text.splitlines():
        return ""
    line = next((line for line in text.splitlines() if line.startswith(_WHEN)), "")
    return line.removeprefix(_WHEN).replace("%%", "%")
