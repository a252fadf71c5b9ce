"""The timers by which engines are restarted: written, read, and removed with their engines."""

import shutil
from pathlib import Path

from gpudeck.services.engine.schedule import restart_units, service_of, timer_of, when_of
from gpudeck.services.engine.systemd import files, units
from gpudeck.services.engine.systemd.bus import Bus
from gpudeck.services.engine.systemd.calendar import check_calendar
from gpudeck.services.engine.systemd.connection import CALL_SECONDS, SYSTEMD, Connection
from gpudeck.services.engine.systemd.errors import JobFailedError, NoUnitError, UnitTakenError
from gpudeck.services.engine.systemd.orders import Orders
from gpudeck.services.engine.systemd.roster import Roster
from gpudeck.services.engine.types import Schedule

_TIMER = f"{SYSTEMD}.Timer"


class Scheduling:
    def __init__(self, bus: Bus, roster: Roster, orders: Orders) -> None:
        self._bus = bus
        self._roster = roster
        self._orders = orders

    def of(self, unit: str) -> Schedule | None:
        """What systemd says of the engine's timer; None where gpudeck wrote none."""
        when = when_of(files.read(self._path(timer_of(unit))) or "", unit)
        if not when:
            return None

        def ask(connection: Connection) -> tuple[str, int]:
            properties = connection.properties(units.load(connection, timer_of(unit)))
            state = str(properties.Get(units.UNIT, "ActiveState", timeout=CALL_SECONDS))
            return state, int(properties.Get(_TIMER, "NextElapseUSecRealtime", timeout=CALL_SECONDS))

        state, following = self._bus.ask(f"read {timer_of(unit)}", ask)
        waits = state == "active" and 0 < following < 2**63
        return Schedule(when, following / 1e6 if waits else None)

    def set(self, unit: str, when: str) -> Schedule:
        check_calendar(when)
        if self._roster.facts(unit)["LoadState"] == "not-found":
            raise NoUnitError(f"There is no {unit}: install the engine first.")
        made = restart_units(unit, when, self._roster.scope, shutil.which("systemctl") or "/usr/bin/systemctl")
        path = self._path(made.timer)
        if path.exists() and not when_of(files.read(path) or "", unit):
            raise UnitTakenError(f"{path} is there already and was not written by gpudeck: remove it by hand.")
        files.write(self._path(made.service), made.service_text)
        files.write(path, made.timer_text)
        self._orders.reload()
        self._orders.enable(made.timer)
        self._orders.wind(made.timer)
        schedule = self.of(unit)
        if schedule is None or schedule.next_at is None:
            raise JobFailedError(f"{made.timer} does not run: see systemctl status {made.timer}.")
        return schedule

    def clear(self, unit: str) -> bool:
        """Remove both units; False where there is no timer of gpudeck's.  The caller has systemd reload."""
        timer, service = timer_of(unit), service_of(unit)
        if not when_of(files.read(self._path(timer)) or "", unit):
            return False
        self._orders.unwind(timer)
        self._orders.disable(timer)
        for name in (timer, service):
            files.delete(self._path(name))
        return True

    def _path(self, unit: str) -> Path:
        return files.unit_folder(self._roster.scope) / unit
