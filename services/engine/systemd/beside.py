"""A plain user's own engines, and beside them those that root installed for the system."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from gpudeck.services.engine.drift import Drift
from gpudeck.services.engine.systemd.manager import SystemdRunner
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
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.secrets import Secrets
from gpudeck.services.plan.types import EngineSpec

_MARK = "@system"  # behind the name of a system's engine where an own one has it too; no engine's name holds an @


class Beside:
    """The Runner over both: new engines become the user's own, every other act goes to whoever has the engine.

    The system's are seen by everyone; acts on them are root's, and those whom polkit lets (`gpudeck polkit`).
    """

    scope = Scope.USER

    def __init__(self, own: SystemdRunner, system: SystemdRunner) -> None:
        self.own = own
        self.system = system
        self._names: frozenset[str] = frozenset()  # of the own engines, as last seen

    @property
    def description(self) -> str:
        return f"{self.own.description}; {self.system.description}" if self.system.lost else self.own.description

    @property
    def outlives_login(self) -> bool:
        return self.own.outlives_login

    def let_outlive_login(self) -> None:
        self.own.let_outlive_login()

    def preview(self, spec: EngineSpec) -> UnitPreview:
        return self.own.preview(spec)

    def install(
        self,
        spec: EngineSpec,
        *,
        enable: bool = False,
        secrets: Secrets = NO_SECRETS,
        shown: UnitPreview | None = None,
    ) -> None:
        self.own.install(spec, enable=enable, secrets=secrets, shown=shown)

    def keep_secrets(self, name: str, secrets: Secrets) -> None:
        runner, bare = self._of(name)
        runner.keep_secrets(bare, secrets)

    def api_key(self, name: str) -> str | None:
        runner, bare = self._of(name)
        return runner.api_key(bare)

    def drift(self, name: str) -> tuple[Drift, ...]:
        runner, bare = self._of(name)
        return runner.drift(bare)

    def reload(self, name: str) -> None:
        runner, bare = self._of(name)
        runner.reload(bare)

    def start(self, name: str) -> None:
        runner, bare = self._of(name)
        runner.start(bare)

    def stop(self, name: str) -> None:
        runner, bare = self._of(name)
        runner.stop(bare)

    def restart(self, name: str) -> None:
        runner, bare = self._of(name)
        runner.restart(bare)

    def remove(self, name: str) -> None:
        runner, bare = self._of(name)
        runner.remove(bare)

    def schedule(self, name: str) -> Schedule | None:
        runner, bare = self._of(name)
        return runner.schedule(bare)

    def set_schedule(self, name: str, when: str | None) -> Schedule | None:
        runner, bare = self._of(name)
        return runner.set_schedule(bare, when)

    def state(self, name: str) -> UnitState | None:
        runner, bare = self._of(name)
        state = runner.state(bare)
        return None if state is None else replace(state, name=name)

    def engines(self) -> tuple[UnitState, ...]:
        own = self.own.engines()
        self._names = frozenset(state.name for state in own)
        system: tuple[UnitState, ...] = ()
        with suppress(OperatorError):  # the description says that the system's bus went away
            system = self.system.engines()
        return (*own, *map(self._marked, system))

    def watch(self, listener: Callable[[UnitState], None]) -> Callable[[], None]:
        ends = (self.own.watch(listener), self.system.watch(lambda state: listener(self._marked(state))))

        def end() -> None:
            for each in ends:
                each()

        return end

    def follow(
        self, name: str, deliver: Callable[[list[LogLine]], None], *, since: float | LogLine | None = None
    ) -> LogFollower:
        runner, bare = self._of(name)
        return runner.follow(bare, deliver, since=since)

    def history(self, name: str, lines: int | None = None) -> list[LogLine]:
        runner, bare = self._of(name)
        return runner.history(bare, lines)

    def starts(self, name: str) -> tuple[Start, ...]:
        runner, bare = self._of(name)
        return runner.starts(bare)

    def log_of(self, name: str, start: Start) -> list[LogLine]:
        runner, bare = self._of(name)
        return runner.log_of(bare, start)

    def close(self) -> None:
        self.own.close()
        self.system.close()

    def _marked(self, state: UnitState) -> UnitState:
        return replace(state, name=state.name + _MARK) if state.name in self._names else state

    def _of(self, name: str) -> tuple[SystemdRunner, str]:
        """Who has the engine, and what it is called there; for one that nobody has, whoever would say so."""
        if name.endswith(_MARK):
            return self.system, name.removesuffix(_MARK)
        if self.own.state(name) is None:
            with suppress(OperatorError):
                if self.system.state(name) is not None:
                    return self.system, name
        return self.own, name
