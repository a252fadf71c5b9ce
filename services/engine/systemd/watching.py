"""From D-Bus signals to states of engines: told once, in order, and never "failed" in passing."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpudeck.services.engine.systemd.connection import PROPERTIES, SYSTEMD, Connection
from gpudeck.services.engine.systemd.units import SERVICE, UNIT, facts_of, unit_of_path
from gpudeck.services.engine.types import UnitState

Listener = Callable[[UnitState], None]
log = logging.getLogger(__name__)

_CHANGED_AT = "StateChangeTimestampMonotonic"


class Watcher:
    """Tells listeners the states of the units that `is_ours`.

    Everything but `add` and `remove` runs on the connection's signal thread, so that states keep their order.
    """

    def __init__(self, is_ours: Callable[[str], bool], state_of: Callable[[str, dict[str, Any]], UnitState]) -> None:
        self._is_ours = is_ours
        self._state_of = state_of
        self._listeners: tuple[Listener, ...] = ()
        self._connection: Connection | None = None
        self._facts: dict[str, dict[str, Any]] = {}
        self._service_part: dict[str, dict[str, Any]] = {}
        self._told: dict[str, UnitState] = {}

    def add(self, listener: Listener) -> Callable[[], None]:
        """Returns what takes the listener away again."""
        self._listeners = (*self._listeners, listener)

        def remove() -> None:
            self._listeners = tuple(other for other in self._listeners if other is not listener)

        return remove

    def attach(self, connection: Connection) -> None:
        """Take the signals of a new connection; what was known of the old one may be stale."""
        self._connection = connection
        self._facts.clear()
        self._service_part.clear()
        # One subscription for all units: those that come later need no call of their own.
        connection.keep(
            connection.bus.subscribe(
                sender=SYSTEMD, iface=PROPERTIES, signal="PropertiesChanged", signal_fired=self._properties_changed
            )
        )

    def refresh(self, units: list[tuple[str, str]], *, tell_all: bool) -> None:
        """Read these (unit, object path) anew; tell what is new, or with `tell_all` everything."""
        for unit, path in units:
            self._read(unit, path)
            self._tell(unit, again=tell_all)
        for gone in self._told.keys() - {unit for unit, _ in units}:
            last = self._told.pop(gone)
            self._facts.pop(gone, None)
            self._service_part.pop(gone, None)
            self._pass_on(replace(last, active="inactive", sub="dead", main_pid=None, gone=True))

    def _properties_changed(
        self, _sender: str, path: str, _iface: str, _signal: str, parameters: tuple[Any, ...]
    ) -> None:
        unit = unit_of_path(path)
        if not self._is_ours(unit):
            return
        interface, changed, _invalidated = parameters
        try:
            if interface == SERVICE:
                # systemd sends the service's part first and the unit's after it, for clients that want both at once.
                self._service_part[unit] = changed
            elif interface == UNIT:
                self._take(unit, path, {**self._service_part.pop(unit, {}), **changed})
        except Exception:
            # Nobody is above this: GLib would print the traceback into the screen.
            log.exception("a change of %s", unit)

    def _take(self, unit: str, path: str, changed: dict[str, Any]) -> None:
        known = self._facts.get(unit)
        if known is None:
            self._read(unit, path)
        elif changed.get(_CHANGED_AT, 0) < known.get(_CHANGED_AT, 0):
            return  # older than what was read since it was sent
        else:
            known.update(changed)
            if known["ActiveState"] == "failed":
                # Every crash of a loop passes through "failed" on its way to the restart.
                self._read(unit, path)
        self._tell(unit)

    def _read(self, unit: str, path: str) -> None:
        assert self._connection is not None
        self._facts[unit] = facts_of(self._connection, path)

    def _tell(self, unit: str, *, again: bool = False) -> None:
        state = self._state_of(unit, self._facts[unit])
        if state == self._told.get(unit) and not again:
            return
        self._told[unit] = state
        self._pass_on(state)

    def _pass_on(self, state: UnitState) -> None:
        for listener in self._listeners:
            try:
                listener(state)
            except Exception:
                log.exception("a listener to %s", state.unit)
