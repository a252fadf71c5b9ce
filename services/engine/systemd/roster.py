"""Which of systemd's units are engines, what each is called, and what systemd says of it."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from gi.repository import GLib

from gpudeck.services.engine.schedule import timer_of, when_of
from gpudeck.services.engine.systemd import files, units
from gpudeck.services.engine.systemd.bus import Bus
from gpudeck.services.engine.systemd.connection import CALL_SECONDS, Connection
from gpudeck.services.engine.systemd.others import Others
from gpudeck.services.engine.systemd.watching import Watcher
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.naming import checked_name

_OWN_PREFIX = "vllm-"


class Roster:
    """The engines of one systemd: units `<prefix><name>.service`, and services of others that run vLLM.

    `bus` is set once it is there: what it calls when a connection is made needs the roster already.
    """

    bus: Bus

    def __init__(self, scope: Scope, prefix: str) -> None:
        self.scope = scope
        self.authors = files.Authors()
        self.watcher = Watcher(lambda unit: bool(self.name(unit)), self.state_from)
        self._prefix = prefix
        self._others = Others()

    def unit(self, name: str) -> str:
        return self._others.unit(name) or f"{self._prefix}{checked_name(name)}.service"

    def name(self, unit: str) -> str:
        """The engine's name in a unit's; "" for other units (and for templates, which are not units yet)."""
        ours = unit.startswith(self._prefix) and unit.endswith(".service") and "@." not in unit
        return unit[len(self._prefix) : -len(".service")] if ours else self._others.name(unit)

    def facts(self, unit: str) -> dict[str, Any]:
        return self.bus.ask(f"read {unit}", lambda connection: units.facts_of(connection, units.load(connection, unit)))

    def state_from(self, unit: str, facts: dict[str, Any]) -> UnitState:
        name = self.name(unit)
        spec = self.authors.spec(facts.get("FragmentPath", ""), name, facts.get("DropInPaths", ()))
        state = units.state_from(facts, name=name, unit=unit, scope=self.scope, spec=spec)
        if timer := files.read(files.unit_folder(self.scope) / timer_of(unit)):
            state = replace(state, restarted_on=when_of(timer, unit))
        return state if spec is not None else replace(state, spec=self._others.spec(unit))

    def engines(self) -> tuple[UnitState, ...]:
        if self._read_others():
            self.refresh()
        states = []
        for unit, _path in self.bus.ask("list the engines", self._ours):
            facts = self.facts(unit)
            if facts["LoadState"] != "not-found":
                states.append(self.state_from(unit, facts))
        return tuple(sorted(states, key=lambda state: state.name))

    def services(self) -> dict[str, str]:
        """Every service that is loaded or lies on disk, with the path of its file ("" where it has none of its own)."""

        def ask(connection: Connection) -> dict[str, str]:
            manager = connection.manager
            files_there = manager.ListUnitFilesByPatterns([], ["*.service"], timeout=CALL_SECONDS)
            found = {Path(path).name: str(path) for path, _state in files_there}
            loaded = manager.ListUnitsByPatterns([], ["*.service"], timeout=CALL_SECONDS)
            return {unit[0]: "" for unit in loaded} | {unit: path for unit, path in found.items() if "@." not in unit}

        return self.bus.ask("list the services", ask)

    def service(self, unit: str, name: str) -> UnitState | None:
        """The state of any service, under the name that it is to have; None where there is none."""
        facts = self.facts(unit)
        if facts["LoadState"] == "not-found":
            return None
        return units.state_from(facts, name=name, unit=unit, scope=self.scope, spec=None)

    def reloading(self, began: bool) -> None:
        """Units may have come, gone or changed; the lists are read elsewhere, since this is the signal thread."""
        if not began:
            threading.Thread(target=self.refresh, name="systemd-refresh", daemon=True).start()

    def refresh(self, *, tell_all: bool = False) -> None:
        try:
            self._read_others()
            connection = self.bus.present()
            ours = self._ours(connection)
            connection.on_signal_thread(lambda: self.watcher.refresh(ours, tell_all=tell_all))
        except (GLib.Error, OperatorError):
            pass  # the bus went away again: its return refreshes everything

    def _ours(self, connection: Connection) -> list[tuple[str, str]]:
        """Our units, loaded or only on disk, with their object paths."""
        pattern = f"{self._prefix}*.service"
        manager = connection.manager
        loaded = {unit[0]: unit[6] for unit in manager.ListUnitsByPatterns([], [pattern], timeout=CALL_SECONDS)}
        for path, _state in manager.ListUnitFilesByPatterns([], [pattern], timeout=CALL_SECONDS):
            unit = Path(path).name
            if unit not in loaded and self.name(unit):
                loaded[unit] = units.load(connection, unit)
        for unit in self._others.units:
            loaded[unit] = units.load(connection, unit)
        return [(unit, path) for unit, path in loaded.items() if self.name(unit)]

    def _read_others(self) -> bool:
        """Look for services that others wrote; True where there are other ones than before.  None are the demo's."""
        if self._prefix != _OWN_PREFIX:
            return False
        ours = {unit[len(_OWN_PREFIX) : -len(".service")] for unit in self.services() if unit.startswith(_OWN_PREFIX)}
        return self._others.read(self, self._prefix, ours)
