"""Orders to systemd: start, stop, restart, reload, reset, each waited for until its job has ended."""

import threading
import time

from gi.repository import GLib

from gpudeck.services.engine.systemd.bus import Bus
from gpudeck.services.engine.systemd.connection import CALL_SECONDS, Connection
from gpudeck.services.engine.systemd.errors import (
    JobFailedError,
    NoRightsError,
    NoUnitError,
    explained,
    no_such_unit,
)
from gpudeck.services.engine.systemd.jobs import Jobs
from gpudeck.services.engine.systemd.outcome import why_not_done, why_not_loaded
from gpudeck.services.engine.systemd.roster import Roster
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

ORDER_SECONDS = 40.0  # a broken polkit is given up by the bus after 25 s
RELOAD_SECONDS = 90.0
START_SECONDS = 90.0  # a start job ends when the program runs; hand-written units of Type=notify may take longer
_STOP_MARGIN = 30.0
_LEFTOVER_SECONDS = 5.0
_LONGEST_STOP = 900.0


class Orders:
    """Everything blocks until systemd is done with it, bounded, and raises OperatorError where it did not end well."""

    def __init__(self, bus: Bus, jobs: Jobs, roster: Roster) -> None:
        self._bus = bus
        self._jobs = jobs
        self._roster = roster

    def start(self, unit: str) -> None:
        self._check_startable(unit)
        # A start by hand shall not be refused for the crashes before it.
        self.reset(unit)
        if "auto-restart" in self._roster.facts(unit)["SubState"]:
            # A start would wait for systemd's own pause between two tries; a restart does not.
            self._job("start", unit, "RestartUnit", START_SECONDS, wanted="active")
        else:
            self._job("start", unit, "StartUnit", START_SECONDS, wanted="active")

    def restart(self, unit: str) -> None:
        self._check_startable(unit)
        self.reset(unit)
        self._job("restart", unit, "RestartUnit", START_SECONDS + self._stop_seconds(unit), wanted="active")

    def stop(self, unit: str) -> None:
        """Returns once no process of it is left."""
        if self._roster.facts(unit)["LoadState"] == "not-found":
            raise NoUnitError(f"There is no {unit}: nothing was stopped.")
        self._job("stop", unit, "StopUnit", self._stop_seconds(unit), wanted="inactive")
        self._wait_until_empty(unit)

    def wind(self, timer: str) -> None:
        """Let a timer count, by what its file says now."""
        self._job("restart", timer, "RestartUnit", START_SECONDS, wanted="active")

    def unwind(self, timer: str) -> None:
        self._job("stop", timer, "StopUnit", START_SECONDS, wanted="inactive")

    def enable(self, unit: str) -> None:
        self._bus.order(
            f"enable {unit}",
            lambda connection: connection.manager.EnableUnitFiles([unit], False, True, timeout=ORDER_SECONDS),
        )

    def disable(self, unit: str) -> None:
        self._bus.order(
            f"disable {unit}",
            lambda connection: connection.manager.DisableUnitFiles([unit], False, timeout=ORDER_SECONDS),
        )

    def reload(self) -> None:
        self._bus.order("reload its units", lambda connection: connection.manager.Reload(timeout=RELOAD_SECONDS))

    def reset(self, unit: str) -> None:
        """Clear the failed state and the count of starts, where there is anything to clear and we may."""
        try:
            self._bus.present().manager.ResetFailedUnit(unit, timeout=ORDER_SECONDS)
        except GLib.Error as error:
            told = explained(error, f"reset {unit}", self._roster.scope)
            if not no_such_unit(error) and not isinstance(told, NoRightsError):
                raise told from None

    def _check_startable(self, unit: str) -> None:
        facts = self._roster.facts(unit)
        trouble = why_not_loaded(unit, facts, self._roster.scope)
        if trouble:
            raise NoUnitError(trouble) if facts["LoadState"] == "not-found" else JobFailedError(trouble)

    def _stop_seconds(self, unit: str) -> float:
        """How long a stop may take by the unit's own settings."""
        own: int = self._roster.facts(unit).get("TimeoutStopUSec", 0)
        return min(own / 1e6, _LONGEST_STOP) + _STOP_MARGIN

    def _job(self, verb: str, unit: str, method: str, seconds: float, *, wanted: str) -> None:
        """Have systemd do it, and wait for the job's end.  Raises OperatorError when it did not end well."""

        def order(connection: Connection) -> tuple[Connection, str]:
            return connection, getattr(connection.manager, method)(unit, "replace", timeout=ORDER_SECONDS)

        connection, job = self._bus.order(f"{verb} {unit}", order)
        end = time.monotonic() + seconds
        result = self._jobs.result(job, connection, seconds)
        while result is None:
            facts = self._roster.facts(unit)  # waits for the bus to come back, if that is why
            if facts["Job"][1] != job:
                result = "done" if facts["ActiveState"] == wanted else "failed"
            elif time.monotonic() >= end:
                raise OperatorError(f"systemd is still trying to {verb} {unit} and goes on: watch its state.")
            else:
                result = self._jobs.result(job, self._bus.present(), end - time.monotonic())
        if result != "done":
            facts = self._roster.facts(unit)
            raise JobFailedError(printable(why_not_done(result, unit, facts, self._roster.scope)))

    def _wait_until_empty(self, unit: str) -> None:
        """A stop job ends with the unit; a process in the kernel's hands (a hung driver) may outlast it."""
        end = time.monotonic() + _LEFTOVER_SECONDS
        pause = threading.Event()
        while True:
            left = self._processes(unit)
            if not left:
                return
            if time.monotonic() > end:
                told = ", ".join(f"{pid} ({printable(command)})" for _group, pid, command in left)
                raise JobFailedError(f"{unit} is stopped, but these processes of it are left: {told}.")
            pause.wait(0.05)

    def _processes(self, unit: str) -> list[tuple[str, int, str]]:
        def ask(connection: Connection) -> list[tuple[str, int, str]]:
            try:
                return list(connection.manager.GetUnitProcesses(unit, timeout=CALL_SECONDS))
            except GLib.Error as error:
                if no_such_unit(error):
                    return []  # nothing held it any more, and systemd dropped it
                raise

        return self._bus.ask(f"list the processes of {unit}", ask)
