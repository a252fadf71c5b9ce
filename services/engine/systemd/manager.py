"""The runner that has systemd run the engines."""

from collections.abc import Callable

from gi.repository import GLib

from gpudeck.services.engine import secrets_file
from gpudeck.services.engine.drift import Drift
from gpudeck.services.engine.journal import JournalQuery, Run
from gpudeck.services.engine.journal_follower import JournalFollower
from gpudeck.services.engine.starts.in_journal import starts_of
from gpudeck.services.engine.systemd import files, lingering
from gpudeck.services.engine.systemd.bus import Bus
from gpudeck.services.engine.systemd.connection import CALL_SECONDS, Connection
from gpudeck.services.engine.systemd.drifting import Drifting
from gpudeck.services.engine.systemd.errors import remote_name
from gpudeck.services.engine.systemd.installing import Installing
from gpudeck.services.engine.systemd.jobs import Jobs
from gpudeck.services.engine.systemd.orders import Orders
from gpudeck.services.engine.systemd.roster import Roster
from gpudeck.services.engine.systemd.scheduling import Scheduling
from gpudeck.services.engine.types import (
    NO_SECRETS,
    LogFollower,
    LogLine,
    Schedule,
    Scope,
    Start,
    UnitPreview,
    UnitState,
)
from gpudeck.services.plan.secrets import Secrets
from gpudeck.services.plan.types import EngineSpec

_ALREADY_SUBSCRIBED = "org.freedesktop.systemd1.AlreadySubscribed"


class SystemdRunner:
    """Runs engines as units `<prefix><name>.service` of the system's systemd, or of the user's own."""

    def __init__(self, scope: Scope, prefix: str = "vllm-") -> None:
        """Connects.  Raises NoBusError or NoAnswerError where no systemd can be reached."""
        self.scope = scope
        self._jobs = Jobs()
        self._roster = Roster(scope, prefix)
        self._bus = Bus(scope, prepare=self._prepare, on_change=self._bus_changed)
        self._roster.bus = self._bus
        self._orders = Orders(self._bus, self._jobs, self._roster)
        self._scheduling = Scheduling(self._bus, self._roster, self._orders)
        self._installing = Installing(self._bus, self._roster, self._orders, self._scheduling)
        self._drifting = Drifting(self._roster, self._installing)

    @property
    def description(self) -> str:
        if self._bus.lost:
            return f"systemd ({self.scope.value}): D-Bus went away, reconnecting"
        if not self.outlives_login:
            return "systemd (user): engines end when you log out, but for loginctl enable-linger"
        return f"systemd ({self.scope.value})"

    @property
    def outlives_login(self) -> bool:
        return self.scope is not Scope.USER or lingering.lingers()

    def let_outlive_login(self) -> None:
        if not self.outlives_login:
            lingering.let_linger()

    @property
    def lost(self) -> bool:
        """Whether the bus went away and is not back yet."""
        return self._bus.lost

    # What is there

    def state(self, name: str) -> UnitState | None:
        unit = self._roster.unit(name)
        facts = self._roster.facts(unit)
        return None if facts["LoadState"] == "not-found" else self._roster.state_from(unit, facts)

    def engines(self) -> tuple[UnitState, ...]:
        return self._roster.engines()

    def services(self) -> dict[str, str]:
        """Every service that is loaded or lies on disk, with the path of its file ("" where it has none of its own)."""
        return self._roster.services()

    def service(self, unit: str, name: str) -> UnitState | None:
        """The state of any service, under the name that it is to have; None where there is none."""
        return self._roster.service(unit, name)

    def watch(self, listener: Callable[[UnitState], None]) -> Callable[[], None]:
        return self._roster.watcher.add(listener)

    # Units

    def preview(self, spec: EngineSpec) -> UnitPreview:
        return self._installing.preview(spec)

    def install(
        self,
        spec: EngineSpec,
        *,
        enable: bool = False,
        secrets: Secrets = NO_SECRETS,
        shown: UnitPreview | None = None,
    ) -> None:
        self._installing.install(spec, enable=enable, secrets=secrets, shown=shown)

    def keep_secrets(self, name: str, secrets: Secrets) -> None:
        self._installing.keep_secrets(name, secrets)

    def api_key(self, name: str) -> str | None:
        unit = self._roster.unit(name)
        return secrets_file.api_key(
            self._roster.facts(unit).get("MainPID") or None, files.secrets_file(self.scope, unit)
        )

    def remove(self, name: str) -> None:
        self._installing.remove(name)

    def drift(self, name: str) -> tuple[Drift, ...]:
        return self._drifting.of(name)

    def reload(self, name: str) -> None:  # noqa: ARG002, one systemd reads all of its units at once
        self._orders.reload()

    # Lifecycle

    def start(self, name: str) -> None:
        self._orders.start(self._roster.unit(name))

    def restart(self, name: str) -> None:
        self._orders.restart(self._roster.unit(name))

    def stop(self, name: str) -> None:
        self._orders.stop(self._roster.unit(name))

    def schedule(self, name: str) -> Schedule | None:
        return self._scheduling.of(self._roster.unit(name))

    def set_schedule(self, name: str, when: str | None) -> Schedule | None:
        unit = self._roster.unit(name)
        if when is not None:
            return self._scheduling.set(unit, when)
        if self._scheduling.clear(unit):
            self._orders.reload()
        return None

    # The log

    def follow(
        self, name: str, deliver: Callable[[list[LogLine]], None], *, since: float | LogLine | None = None
    ) -> LogFollower:
        query = JournalQuery(self._roster.unit(name), self.scope)
        return JournalFollower(query, deliver, since=(lambda: self._run(name)) if since is None else since)

    def history(self, name: str, lines: int | None = None) -> list[LogLine]:
        return JournalQuery(self._roster.unit(name), self.scope).read(lines)

    def starts(self, name: str) -> tuple[Start, ...]:
        return starts_of(JournalQuery(self._roster.unit(name), self.scope))

    def log_of(self, name: str, start: Start) -> list[LogLine]:
        return JournalQuery(self._roster.unit(name), self.scope).read(invocation=start.key)

    def close(self) -> None:
        self._bus.close()

    # Within

    def _prepare(self, connection: Connection) -> None:
        def subscribe() -> None:
            connection.keep(connection.manager.JobRemoved.connect(self._jobs.removed))
            connection.keep(connection.manager.Reloading.connect(self._roster.reloading))
            self._roster.watcher.attach(connection)

        connection.on_signal_thread(subscribe)
        try:
            connection.manager.Subscribe(timeout=CALL_SECONDS)
        except GLib.Error as error:
            if remote_name(error) != _ALREADY_SUBSCRIBED:
                raise

    def _bus_changed(self, there: bool) -> None:
        self._jobs.look_up()
        if there:
            self._roster.refresh(tell_all=True)

    def _run(self, name: str) -> Run | None:
        """The present run, or the last one; None where there was none."""
        facts = self._roster.facts(self._roster.unit(name))
        noted_at = facts["InactiveExitTimestamp"]
        return Run(noted_at / 1e6, bytes(facts["InvocationID"]).hex()) if noted_at else None
