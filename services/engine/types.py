"""Engines as the panel sees them, whoever runs them."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from gpudeck.services.engine.drift import Drift
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.secrets import Secrets
from gpudeck.services.plan.types import EngineSpec

NO_SECRETS = Secrets()


class Scope(str, Enum):
    """Who runs an engine: the system's systemd, the user's, or gpudeck's embedded runner where no systemd is."""

    SYSTEM = "system"
    USER = "user"
    EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class UnitState:
    """What the runner says of one engine, in systemd's words (the embedded runner uses the same ones)."""

    name: str  # the engine's name
    unit: str  # vllm-<name>.service
    scope: Scope
    managed: bool  # written by gpudeck
    active: str  # ActiveState: inactive, activating, active, deactivating, failed
    sub: str = ""  # SubState: dead, running, auto-restart …
    result: str = ""  # Result: success, exit-code, signal, timeout …
    main_pid: int | None = None
    since: float | None = None  # when it entered this state, seconds since the epoch
    exit_status: int | None = None  # of the main process's last end: its exit code, or 128+N when signal N killed it
    restarts: int = 0
    spec: EngineSpec | None = None  # what its unit was made from, or what was read from another's unit
    gone: bool = False  # the last word of a watched engine: its unit was deleted
    retry_at: float | None = None  # when systemd tries again, seconds since the epoch; only between two tries
    restarted_on: str = ""  # the calendar event (systemd.time(7)) at which a timer of gpudeck's restarts it
    gave_up: bool = False  # it crashed so often that systemd starts it no more until someone asks for it

    @property
    def alive(self) -> bool:
        return self.active in ("activating", "active", "deactivating", "reloading")

    @property
    def between_tries(self) -> bool:
        """Whether it crashed and waits for systemd to start it again: systemd calls that "activating"."""
        return "auto-restart" in self.sub

    @property
    def runs(self) -> bool:
        """Whether there is a run now, one that ends included."""
        return self.alive and not self.between_tries


@dataclass(frozen=True, slots=True)
class Schedule:
    """When an engine is restarted by the clock."""

    when: str  # a calendar event: systemd.time(7)
    next_at: float | None  # seconds since the epoch; None where its timer does not run


@dataclass(frozen=True, slots=True)
class UnitPreview:
    """What an install would do, told before it is done."""

    path: str  # the file that would be written
    text: str
    existing: str | None = None  # what stands there now
    managed: bool = True  # False: what stands there was not written by gpudeck, and is never overwritten
    edited: bool = False  # what stands there was written by gpudeck, and edited by hand since
    reasons: tuple[str, ...] = ()  # what each line of `text` is for, "" where it says so itself
    secrets_file: str = ""  # where keys are kept, which an install writes where it is given any

    @property
    def unchanged(self) -> bool:
        return self.existing == self.text


def refuse_other_than(shown: UnitPreview | None, now: UnitPreview) -> None:
    """Raise OperatorError where what would be written over is not what the operator was shown."""
    if shown is not None and (shown.path, shown.existing) != (now.path, now.existing):
        raise OperatorError(f"{now.path} was changed meanwhile: look at it anew before you write over it.")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of an engine's log as it came; `text` is foreign and may hold anything but a newline."""

    text: str
    at: float | None = None  # seconds since the epoch
    priority: int | None = None  # syslog's: 3 error, 4 warning, 6 information
    pid: int | None = None
    cursor: str | None = None  # where to resume
    left_out: int = 0  # so many lines are missing here, which this one, gpudeck's own, tells


@dataclass(frozen=True, slots=True)
class Start:
    """A start that the log still holds."""

    key: str  # what its runner finds its log by: systemd's invocation ID, or a log file's name
    at: float | None = None  # seconds since the epoch; None where its beginning is no longer kept
    ended: float | None = None
    outcome: str = ""  # how it ended, in a few words; "" where it runs, or its end is not told
    failed: bool = False  # it ended, and nobody had asked for that


class LogFollower(Protocol):
    """A log followed as it grows, on a thread of its own."""

    def start(self) -> None: ...

    def stop(self) -> None:
        """End the thread and its child process; returns within two seconds."""
        ...


class Runner(Protocol):
    """Starts and stops engines.  Methods block (bounded) and may be called from any thread but the screen's.

    All raise OperatorError.  An engine never depends on the panel: closing a runner stops nothing.
    """

    scope: Scope

    @property
    def description(self) -> str:
        """One phrase for the header: "systemd (system)", "embedded: no systemd here"."""
        ...

    @property
    def outlives_login(self) -> bool:
        """Whether its engines go on when the operator logs out, and start at boot where they are enabled."""
        ...

    def let_outlive_login(self) -> None:
        """Have it so from now on, for all of this user's services.  Raises OperatorError where that is refused."""
        ...

    def preview(self, spec: EngineSpec) -> UnitPreview: ...

    def install(
        self,
        spec: EngineSpec,
        *,
        enable: bool = False,
        secrets: Secrets = NO_SECRETS,
        shown: UnitPreview | None = None,
    ) -> None:
        """Write the unit atomically and have it loaded.  Refuses a unit that gpudeck did not write, and one that is not
        what was `shown` before: someone else changed it meanwhile.

        `secrets` go into a file of mode 0600 that the engine reads when it starts, never into the unit.
        """
        ...

    def keep_secrets(self, name: str, secrets: Secrets) -> None:
        """Write keys of an engine that gpudeck installed; it reads them when it starts the next time."""
        ...

    def api_key(self, name: str) -> str | None:
        """The key that gpudeck's own requests to the engine need; None where it has none, or none we may read."""
        ...

    def drift(self, name: str) -> tuple[Drift, ...]:
        """Where the unit's file, what is loaded of it and what runs are not the same."""
        ...

    def reload(self, name: str) -> None:
        """Have units read anew by whoever holds this engine's: changes on disk then count."""
        ...

    def start(self, name: str) -> None:
        """Ask for the start and wait for the job, not for readiness."""
        ...

    def stop(self, name: str) -> None:
        """Stop and wait until no process of the engine is left."""
        ...

    def restart(self, name: str) -> None: ...

    def remove(self, name: str) -> None:
        """Stop it if it runs, and delete its unit and its keys."""
        ...

    def schedule(self, name: str) -> Schedule | None:
        """When it is restarted by the clock; None where it is not."""
        ...

    def set_schedule(self, name: str, when: str | None) -> Schedule | None:
        """Have it restarted at this calendar event wherever it runs then; None ends that."""
        ...

    def state(self, name: str) -> UnitState | None: ...

    def engines(self) -> tuple[UnitState, ...]: ...

    def watch(self, listener: Callable[[UnitState], None]) -> Callable[[], None]:
        """Call `listener` (on the runner's thread) at every change of an engine; returns what ends that."""
        ...

    def follow(
        self, name: str, deliver: Callable[[list[LogLine]], None], *, since: float | LogLine | None = None
    ) -> LogFollower:
        """A follower of the engine's log from `since` on: epoch seconds, what follows a line of `history`, or, where
        None, its present run.

        `deliver` is called on the follower's thread with batches, oldest first.
        """
        ...

    def history(self, name: str, lines: int | None = None) -> list[LogLine]:
        """The log as far as it is kept, earlier runs too, oldest first; only the last `lines` where given."""
        ...

    def starts(self, name: str) -> tuple[Start, ...]:
        """The starts that the log still holds, newest first."""
        ...

    def log_of(self, name: str, start: Start) -> list[LogLine]:
        """What was logged of one start, oldest line first; of a very long one its end."""
        ...

    def close(self) -> None: ...
