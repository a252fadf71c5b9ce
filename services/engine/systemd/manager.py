"""The runner that has systemd run the engines."""

import os
import pwd
import re
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gi.repository import GLib

from gpudeck.services.engine.journal import JournalFollower, JournalQuery, Run
from gpudeck.services.engine.starts.in_journal import starts_of
from gpudeck.services.engine.systemd import files, units
from gpudeck.services.engine.systemd.bus import Bus
from gpudeck.services.engine.systemd.connection import CALL_SECONDS, Connection
from gpudeck.services.engine.systemd.errors import (
    JobFailedError,
    NoRightsError,
    NoUnitError,
    UnitTakenError,
    explained,
    no_such_unit,
    remote_name,
)
from gpudeck.services.engine.systemd.jobs import Jobs
from gpudeck.services.engine.systemd.others import Others
from gpudeck.services.engine.systemd.outcome import why_not_done, why_not_loaded
from gpudeck.services.engine.systemd.watching import Watcher
from gpudeck.services.engine.types import LogFollower, LogLine, Scope, Start, UnitPreview, UnitState
from gpudeck.services.engine.unit_text import text_of, unit_lines
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.command import argv, environment
from gpudeck.services.plan.naming import checked_name
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.text import printable

ORDER_SECONDS = 40.0  # a broken polkit is given up by the bus after 25 s
RELOAD_SECONDS = 90.0
START_SECONDS = 90.0  # a start job ends when the program runs; hand-written units of Type=notify may take longer
_STOP_MARGIN = 30.0
_LEFTOVER_SECONDS = 5.0
_LONGEST_STOP = 900.0
_LINGER = "/var/lib/systemd/linger"  # where logind keeps note of it, in a file of each user's name
_OWN_PREFIX = "vllm-"
_ALREADY_SUBSCRIBED = "org.freedesktop.systemd1.AlreadySubscribed"


class SystemdRunner:
    """Runs engines as units `<prefix><name>.service` of the system's systemd, or of the user's own."""

    def __init__(self, scope: Scope, prefix: str = "vllm-", *, user: str | None = None) -> None:
        """Connects.  `user` is whom installed engines run as (system scope; None: root).

        Raises NoBusError or NoAnswerError where no systemd can be reached.
        """
        self.scope = scope
        self._prefix = prefix
        self._user = user
        self._authors = files.Authors()
        self._others = Others()
        self._jobs = Jobs()
        self._watcher = Watcher(lambda unit: bool(self._name(unit)), self._state_from)
        self._bus = Bus(scope, prepare=self._prepare, on_change=self._bus_changed)

    @property
    def description(self) -> str:
        if self._bus.lost:
            return f"systemd ({self.scope.value}): D-Bus went away, reconnecting"
        if self.scope is Scope.USER and not _lingers():
            return "systemd (user): engines end when you log out, but for loginctl enable-linger"
        return f"systemd ({self.scope.value})"

    @property
    def lost(self) -> bool:
        """Whether the bus went away and is not back yet."""
        return self._bus.lost

    # What is there

    def state(self, name: str) -> UnitState | None:
        unit = self._unit(name)
        facts = self._facts(unit)
        return None if facts["LoadState"] == "not-found" else self._state_from(unit, facts)

    def engines(self) -> tuple[UnitState, ...]:
        if self._read_others():
            self._refresh()
        states = []
        for unit, _path in self._bus.ask("list the engines", self._ours):
            facts = self._facts(unit)
            if facts["LoadState"] != "not-found":
                states.append(self._state_from(unit, facts))
        return tuple(sorted(states, key=lambda state: state.name))

    def services(self) -> dict[str, str]:
        """Every service that is loaded or lies on disk, with the path of its file ("" where it has none of its own)."""

        def ask(connection: Connection) -> dict[str, str]:
            manager = connection.manager
            files_there = manager.ListUnitFilesByPatterns([], ["*.service"], timeout=CALL_SECONDS)
            found = {Path(path).name: str(path) for path, _state in files_there}
            loaded = manager.ListUnitsByPatterns([], ["*.service"], timeout=CALL_SECONDS)
            return {unit[0]: "" for unit in loaded} | {unit: path for unit, path in found.items() if "@." not in unit}

        return self._bus.ask("list the services", ask)

    def service(self, unit: str, name: str) -> UnitState | None:
        """The state of any service, under the name that it is to have; None where there is none."""
        facts = self._facts(unit)
        if facts["LoadState"] == "not-found":
            return None
        return units.state_from(facts, name=name, unit=unit, scope=self.scope, spec=None)

    def watch(self, listener: Callable[[UnitState], None]) -> Callable[[], None]:
        return self._watcher.add(listener)

    # Units

    def preview(self, spec: EngineSpec) -> UnitPreview:
        unit = self._unit(checked_name(spec.name))
        path = files.unit_folder(self.scope) / unit
        lines = unit_lines(
            spec,
            argv=_absolute(argv(spec)),
            environment=environment(spec),
            scope=self.scope,
            secrets_file=str(files.secrets_file(self.scope, unit)),
            user=self._user,
            systemd_version=self._version(),
        )
        text, reasons = text_of(lines), tuple(line.why for line in lines)
        facts = self._facts(unit)
        if facts["LoadState"] == "masked":
            raise UnitTakenError(why_not_loaded(unit, facts, self.scope) or "")
        standing = str(path) if path.is_symlink() or path.exists() else facts["FragmentPath"]
        if not standing:
            return UnitPreview(str(path), text, reasons=reasons)
        ours = standing == str(path) and not path.is_symlink() and self._authors.spec(standing, spec.name) is not None
        return UnitPreview(standing, text, existing=files.read(standing) or "", managed=ours, reasons=reasons)

    def install(self, spec: EngineSpec, *, enable: bool = False) -> None:
        unit = self._unit(spec.name)
        preview = self.preview(spec)
        if not preview.managed:
            raise UnitTakenError(
                f"{unit} is there already and was not written by gpudeck ({preview.path}): "
                "give the engine another name, or remove that unit."
            )
        if not preview.unchanged:
            files.write(Path(preview.path), preview.text)
        if enable:
            self._bus.order(
                f"enable {unit}",
                lambda connection: connection.manager.EnableUnitFiles([unit], False, True, timeout=ORDER_SECONDS),
            )
        self._reload()
        trouble = why_not_loaded(unit, self._facts(unit), self.scope)
        if trouble:
            raise JobFailedError(trouble)

    def remove(self, name: str) -> None:
        unit = self._unit(name)
        path = files.unit_folder(self.scope) / unit
        if self._authors.spec(str(path), name) is None:
            if not path.exists() and self._facts(unit)["LoadState"] == "not-found":
                raise NoUnitError(f"There is no {unit}: nothing was removed.")
            raise UnitTakenError(f"{unit} was not written by gpudeck: remove it by hand.")
        if not os.access(path.parent, os.W_OK):
            # Told before the engine is stopped, which polkit may allow.
            raise NoRightsError(f"You may not remove {path}: run gpudeck as root.")
        self.stop(name)
        self._bus.order(
            f"disable {unit}",
            lambda connection: connection.manager.DisableUnitFiles([unit], False, timeout=ORDER_SECONDS),
        )
        files.delete(path)
        self._reload()
        self._reset(unit)

    # Lifecycle

    def start(self, name: str) -> None:
        unit = self._startable(name)
        # A start by hand shall not be refused for the crashes before it.
        self._reset(unit)
        if "auto-restart" in self._facts(unit)["SubState"]:
            # A start would wait for systemd's own pause between two tries; a restart does not.
            self._job("start", unit, "RestartUnit", START_SECONDS, wanted="active")
        else:
            self._job("start", unit, "StartUnit", START_SECONDS, wanted="active")

    def restart(self, name: str) -> None:
        unit = self._startable(name)
        self._reset(unit)
        self._job("restart", unit, "RestartUnit", START_SECONDS + self._stop_seconds(unit), wanted="active")

    def stop(self, name: str) -> None:
        unit = self._unit(name)
        if self._facts(unit)["LoadState"] == "not-found":
            raise NoUnitError(f"There is no {unit}: nothing was stopped.")
        self._job("stop", unit, "StopUnit", self._stop_seconds(unit), wanted="inactive")
        self._wait_until_empty(unit)

    # The log

    def follow(
        self, name: str, deliver: Callable[[list[LogLine]], None], *, since: float | LogLine | None = None
    ) -> LogFollower:
        query = JournalQuery(self._unit(name), self.scope)
        return JournalFollower(query, deliver, since=(lambda: self._run(name)) if since is None else since)

    def history(self, name: str, lines: int | None = None) -> list[LogLine]:
        return JournalQuery(self._unit(name), self.scope).read(lines)

    def starts(self, name: str) -> tuple[Start, ...]:
        return starts_of(JournalQuery(self._unit(name), self.scope))

    def log_of(self, name: str, start: Start) -> list[LogLine]:
        return JournalQuery(self._unit(name), self.scope).read(invocation=start.key)

    def close(self) -> None:
        self._bus.close()

    # Within

    def _unit(self, name: str) -> str:
        return self._others.unit(name) or f"{self._prefix}{checked_name(name)}.service"

    def _name(self, unit: str) -> str:
        """The engine's name in a unit's; "" for other units (and for templates, which are not units yet)."""
        ours = unit.startswith(self._prefix) and unit.endswith(".service") and "@." not in unit
        return unit[len(self._prefix) : -len(".service")] if ours else self._others.name(unit)

    def _prepare(self, connection: Connection) -> None:
        def subscribe() -> None:
            connection.keep(connection.manager.JobRemoved.connect(self._jobs.removed))
            connection.keep(connection.manager.Reloading.connect(self._reloading))
            self._watcher.attach(connection)

        connection.on_signal_thread(subscribe)
        try:
            connection.manager.Subscribe(timeout=CALL_SECONDS)
        except GLib.Error as error:
            if remote_name(error) != _ALREADY_SUBSCRIBED:
                raise

    def _bus_changed(self, there: bool) -> None:
        self._jobs.look_up()
        if there:
            self._refresh(tell_all=True)

    def _reloading(self, began: bool) -> None:
        """Units may have come, gone or changed; the lists are read elsewhere, since this is the signal thread."""
        if not began:
            threading.Thread(target=self._refresh, name="systemd-refresh", daemon=True).start()

    def _refresh(self, *, tell_all: bool = False) -> None:
        try:
            self._read_others()
            connection = self._bus.present()
            ours = self._ours(connection)
            connection.on_signal_thread(lambda: self._watcher.refresh(ours, tell_all=tell_all))
        except (GLib.Error, OperatorError):
            pass  # the bus went away again: its return refreshes everything

    def _ours(self, connection: Connection) -> list[tuple[str, str]]:
        """Our units, loaded or only on disk, with their object paths."""
        pattern = f"{self._prefix}*.service"
        manager = connection.manager
        loaded = {unit[0]: unit[6] for unit in manager.ListUnitsByPatterns([], [pattern], timeout=CALL_SECONDS)}
        for path, _state in manager.ListUnitFilesByPatterns([], [pattern], timeout=CALL_SECONDS):
            unit = Path(path).name
            if unit not in loaded and self._name(unit):
                loaded[unit] = units.load(connection, unit)
        for unit in self._others.units:
            loaded[unit] = units.load(connection, unit)
        return [(unit, path) for unit, path in loaded.items() if self._name(unit)]

    def _read_others(self) -> bool:
        """Look for services that others wrote; True where there are other ones than before.  None are the demo's."""
        if self._prefix != _OWN_PREFIX:
            return False
        ours = {unit[len(_OWN_PREFIX) : -len(".service")] for unit in self.services() if unit.startswith(_OWN_PREFIX)}
        return self._others.read(self, self._prefix, ours)

    def _facts(self, unit: str) -> dict[str, Any]:
        return self._bus.ask(
            f"read {unit}", lambda connection: units.facts_of(connection, units.load(connection, unit))
        )

    def _state_from(self, unit: str, facts: dict[str, Any]) -> UnitState:
        name = self._name(unit)
        spec = self._authors.spec(facts.get("FragmentPath", ""), name)
        state = units.state_from(facts, name=name, unit=unit, scope=self.scope, spec=spec)
        return state if spec is not None else replace(state, spec=self._others.spec(unit))

    def _version(self) -> int:
        def ask(connection: Connection) -> str:
            properties = connection.properties("/org/freedesktop/systemd1")
            return str(properties.Get("org.freedesktop.systemd1.Manager", "Version", timeout=CALL_SECONDS))

        # The string is the distribution's, such as 252.38-1~deb12u1.
        first = re.search(r"\d+", self._bus.ask("tell its version", ask))
        return int(first.group()) if first else 0

    def _reload(self) -> None:
        self._bus.order("reload its units", lambda connection: connection.manager.Reload(timeout=RELOAD_SECONDS))

    def _reset(self, unit: str) -> None:
        """Clear the failed state and the count of starts, where there is anything to clear and we may."""
        try:
            self._bus.present().manager.ResetFailedUnit(unit, timeout=ORDER_SECONDS)
        except GLib.Error as error:
            told = explained(error, f"reset {unit}", self.scope)
            if not no_such_unit(error) and not isinstance(told, NoRightsError):
                raise told from None

    def _startable(self, name: str) -> str:
        unit = self._unit(name)
        facts = self._facts(unit)
        trouble = why_not_loaded(unit, facts, self.scope)
        if trouble:
            raise NoUnitError(trouble) if facts["LoadState"] == "not-found" else JobFailedError(trouble)
        return unit

    def _stop_seconds(self, unit: str) -> float:
        """How long a stop may take by the unit's own settings."""
        own: int = self._facts(unit).get("TimeoutStopUSec", 0)
        return min(own / 1e6, _LONGEST_STOP) + _STOP_MARGIN

    def _job(self, verb: str, unit: str, method: str, seconds: float, *, wanted: str) -> None:
        """Have systemd do it, and wait for the job's end.  Raises OperatorError when it did not end well."""

        def order(connection: Connection) -> tuple[Connection, str]:
            return connection, getattr(connection.manager, method)(unit, "replace", timeout=ORDER_SECONDS)

        connection, job = self._bus.order(f"{verb} {unit}", order)
        end = time.monotonic() + seconds
        result = self._jobs.result(job, connection, seconds)
        while result is None:
            facts = self._facts(unit)  # waits for the bus to come back, if that is why
            if facts["Job"][1] != job:
                result = "done" if facts["ActiveState"] == wanted else "failed"
            elif time.monotonic() >= end:
                raise OperatorError(f"systemd is still trying to {verb} {unit} and goes on: watch its state.")
            else:
                result = self._jobs.result(job, self._bus.present(), end - time.monotonic())
        if result != "done":
            raise JobFailedError(printable(why_not_done(result, unit, self._facts(unit), self.scope)))

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

    def _run(self, name: str) -> Run | None:
        """The present run, or the last one; None where there was none."""
        facts = self._facts(self._unit(name))
        noted_at = facts["InactiveExitTimestamp"]
        return Run(noted_at / 1e6, bytes(facts["InvocationID"]).hex()) if noted_at else None


def _lingers() -> bool:
    """Whether this user's systemd outlives their logins."""
    return Path(_LINGER, pwd.getpwuid(os.getuid()).pw_name).exists()


def _absolute(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command with its program found: systemd has no PATH of ours, and gpudeck's may be gone tomorrow."""
    found = shutil.which(words[0])
    if found is None:
        raise OperatorError(
            f"The program {printable(words[0])} is not found or can not be executed: "
            "activate the environment that vLLM is in, or give the program's full path."
        )
    return (str(Path(found).absolute()), *words[1:])
