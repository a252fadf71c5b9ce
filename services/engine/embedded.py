"""Engines where no systemd is: detached processes with a supervisor and a log file each.

One directory an engine, `$XDG_STATE_HOME/gpudeck/engines/<unit>/` (see enginedir.py), is all that it takes to find it
again.  There is no restart and no start at boot; the words for states are systemd's.
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpudeck.services.engine import secrets_file
from gpudeck.services.engine.drift import Drift
from gpudeck.services.engine.embedded_state import unit_state
from gpudeck.services.engine.embedded_watch import Watcher
from gpudeck.services.engine.enginedir import RUN_VARIABLE, Command, EngineDirectory, write
from gpudeck.services.engine.filelock import holding
from gpudeck.services.engine.logfile import FileFollower, read_lines
from gpudeck.services.engine.processes import Process, belonging, boot_id, signal_all, title
from gpudeck.services.engine.starts.in_files import log_in, starts_in
from gpudeck.services.engine.types import (
    NO_SECRETS,
    LogFollower,
    LogLine,
    Schedule,
    Scope,
    Start,
    UnitPreview,
    UnitState,
    refuse_other_than,
)
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan import spec_json
from gpudeck.services.plan.command import argv, environment
from gpudeck.services.plan.naming import checked_name, valid_name
from gpudeck.services.plan.secrets import Secrets, refuse_exposed
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.text import printable

# As in the unit for systemd: workers may need long, and a vLLM that starts loses the first SIGTERM.
_STOP_TIMEOUT_S = 60.0
_SECOND_TERM_S = 5.0
_KILL_S = 10.0  # for the kernel to end what was killed
# What belongs to the panel's terminal and login, and would mislead an engine that outlives both.
_NOT_INHERITED = (
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOWID",
    "OLDPWD",
    "SHLVL",
    "_",
)
_NOT_INHERITED_PREFIXES = ("TEXTUAL", "SSH_")


class EmbeddedRunner:
    """The Runner for a machine without systemd.  Several gpudecks may use one `home` at once."""

    scope = Scope.EMBEDDED

    def __init__(self, prefix: str = "vllm-", reason: str = "", home: Path | None = None) -> None:
        """`prefix` begins the units' names, `reason` says why there is no systemd, `home` replaces the XDG folder."""
        self._prefix = prefix
        self._reason = reason or "no systemd here"
        self._home = home if home is not None else _state_home() / "gpudeck" / "engines"
        self._watcher = Watcher(self.engines, self._supervisors)

    @property
    def description(self) -> str:
        return f"embedded: {self._reason}"

    @property
    def outlives_login(self) -> bool:
        return True

    def let_outlive_login(self) -> None:
        """Its engines are detached from the beginning."""

    def preview(self, spec: EngineSpec) -> UnitPreview:
        files = self._files(spec.name)
        try:
            existing = files.command.read_text(encoding="utf-8", errors="replace")
        except OSError:
            existing = None
        text = self._command(spec).text()
        return UnitPreview(
            str(files.command),
            text,
            existing,
            managed=existing is None or self._is_ours(files),
            secrets_file=str(files.secrets),
        )

    def install(
        self,
        spec: EngineSpec,
        *,
        enable: bool = False,
        secrets: Secrets = NO_SECRETS,
        shown: UnitPreview | None = None,
    ) -> None:
        if enable:
            raise OperatorError(f"Without systemd nothing can start {spec.name} at boot: install it without --enable.")
        files = self._files(spec.name)
        with self._told(spec.name):
            self._home.mkdir(parents=True, exist_ok=True)
            files.path.mkdir(mode=0o700, exist_ok=True)
            if not (files.abandoned or self._is_ours(files)):
                raise OperatorError(f"{files.path} was not written by gpudeck: choose another name, or move it away.")
            text = self._command(spec).text()
            refuse_other_than(shown, self.preview(spec))
            with holding(files.lock, spec.name):
                if files.abandoned:
                    files.clear()  # what an engine of that name had, its key above all, is not the new one's
                if self._state(spec.name, files).alive and files.command.read_text(encoding="utf-8") != text:
                    raise OperatorError(f"{spec.name} runs with other settings: stop it first, or choose another name.")
                if secrets:
                    self._write_secrets(files, secrets)
                write(files.spec, spec_json.dumps(spec))
                write(files.command, text)
        self._watcher.wake()

    def keep_secrets(self, name: str, secrets: Secrets) -> None:
        files = self._installed(name)
        with self._told(name), holding(files.lock, name):
            self._write_secrets(files, secrets)

    def api_key(self, name: str) -> str | None:
        files = self._files(name)
        run = files.run()
        running = run is not None and run.boot == boot_id() and run.main.alive
        return secrets_file.api_key(run.main.pid if run is not None and running else None, files.secrets)

    def drift(self, name: str) -> tuple[Drift, ...]:  # noqa: ARG002, what runs here always is what was installed
        return ()

    def reload(self, name: str) -> None:
        """Nothing holds a copy of what was installed."""

    def start(self, name: str) -> None:
        files = self._installed(name)
        with self._told(name), holding(files.lock, name):
            if self._state(name, files).alive:
                return
            Command.read(files.command)  # what is broken is said here, in a sentence
            if left := self._members(files):
                raise OperatorError(f"Processes of {name} are left over ({_list(left)}): stop it first.")
            files.begin()
            self._launch(name, files)
        self._watcher.wake()

    def stop(self, name: str) -> None:
        files = self._installed(name)
        with self._told(name), holding(files.lock, name):
            self._stop(name, files)
        self._watcher.wake()

    def restart(self, name: str) -> None:
        self.stop(name)
        self.start(name)

    def remove(self, name: str) -> None:
        files = self._installed(name)
        with self._told(name), holding(files.lock, name):
            self._stop(name, files)
            # The command goes first: without it there is no engine, whatever else is left.
            files.command.unlink()
            files.clear()
            files.lock.unlink()
            files.path.rmdir()
        self._watcher.wake()

    def schedule(self, name: str) -> Schedule | None:
        self._installed(name)
        return None

    def set_schedule(self, name: str, when: str | None) -> Schedule | None:
        self._installed(name)
        if when is not None:
            raise OperatorError(
                f"Without systemd nothing can restart {name} by the clock: a line of cron can, with "
                f"`gpudeck restart {name}`."
            )
        return None

    def state(self, name: str) -> UnitState | None:
        files = self._files(name)
        return self._state(name, files) if files.command.exists() else None

    def engines(self) -> tuple[UnitState, ...]:
        try:
            units = sorted(entry.name for entry in self._home.iterdir())
        except OSError:
            return ()
        names = [unit.removeprefix(self._prefix).removesuffix(".service") for unit in units]
        states = (
            self.state(name)
            for unit, name in zip(units, names, strict=True)
            if valid_name(name) and unit == self._unit(name)
        )
        return tuple(state for state in states if state is not None)

    def watch(self, listener: Callable[[UnitState], None]) -> Callable[[], None]:
        return self._watcher.add(listener)

    def follow(
        self, name: str, deliver: Callable[[list[LogLine]], None], *, since: float | LogLine | None = None
    ) -> LogFollower:
        files = self._installed(name)
        history = () if since is None else (files.previous_log,)
        if isinstance(since, LogLine):
            return FileFollower(files.log, deliver, history=history, after=since.cursor)
        return FileFollower(files.log, deliver, history=history, since=since)

    def history(self, name: str, lines: int | None = None) -> list[LogLine]:
        files = self._installed(name)
        with self._told(name):
            return read_lines((files.previous_log, files.log), lines)

    def starts(self, name: str) -> tuple[Start, ...]:
        return starts_in(self._installed(name))

    def log_of(self, name: str, start: Start) -> list[LogLine]:
        files = self._installed(name)
        with self._told(name):
            return log_in(files, start)

    def close(self) -> None:
        self._watcher.close()

    def _unit(self, name: str) -> str:
        return f"{self._prefix}{name}.service"

    def _files(self, name: str) -> EngineDirectory:
        return EngineDirectory(self._home / self._unit(checked_name(name)))

    def _installed(self, name: str) -> EngineDirectory:
        files = self._files(name)
        if not files.command.exists():
            raise OperatorError(f"There is no engine named {name} here: install it, or look at `gpudeck engines`.")
        return files

    def _command(self, spec: EngineSpec) -> Command:
        words = argv(spec)
        for text in (*words, *(text for pair in environment(spec).items() for text in pair)):
            if "\0" in text or "\n" in text:
                raise OperatorError(
                    f"{printable(text[:80])!r} holds a line break or NUL, which no command may: remove it."
                )
        refuse_exposed(words, environment(spec), str(self._files(spec.name).secrets))
        # An engine that drains its requests would take a second SIGTERM for an order to drop them.
        drains = any(word.startswith("--shutdown-timeout") for word in words)
        second = None if drains else _SECOND_TERM_S
        return Command(self._unit(spec.name), words, environment(spec), _STOP_TIMEOUT_S, second)

    def _write_secrets(self, files: EngineDirectory, secrets: Secrets) -> None:
        text = secrets_file.changed_text(files.secrets, secrets)
        if text is None:
            files.secrets.unlink(missing_ok=True)
        else:
            write(files.secrets, text)

    def _is_ours(self, files: EngineDirectory) -> bool:
        try:
            Command.read(files.command)
        except (OSError, ValueError):
            return False
        return True

    def _state(self, name: str, files: EngineDirectory) -> UnitState:
        try:
            spec = spec_json.loads(files.spec.read_text(encoding="utf-8", errors="replace"))
        except (OSError, OperatorError):
            spec = None
        return unit_state(files, name, self._unit(name), spec, boot_id())

    def _supervisors(self) -> tuple[Process, ...]:
        """Of every engine that may run."""
        try:
            runs = [
                EngineDirectory(entry).run() for entry in self._home.iterdir() if entry.name.startswith(self._prefix)
            ]
        except OSError:
            return ()
        return tuple(run.supervisor for run in runs if run is not None and run.supervisor.alive)

    def _launch(self, name: str, files: EngineDirectory) -> None:
        inherited = {
            variable: value
            for variable, value in os.environ.items()
            if variable not in _NOT_INHERITED and not variable.startswith(_NOT_INHERITED_PREFIXES)
        }
        started = subprocess.run(
            [sys.executable, "-m", "gpudeck.services.engine.supervisor", str(files.path), uuid.uuid4().hex],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            env=inherited,
            check=False,
            timeout=30,
        )
        if started.returncode != 0:
            told = printable(" ".join(started.stderr.decode("utf-8", "replace").split())[-300:])
            raise OperatorError(f"{name} could not be started: {told}.")

    def _stop(self, name: str, files: EngineDirectory) -> None:
        """End the supervised run, or what is left of one whose supervisor is gone, until no process is left."""
        run = files.run()
        if run is None or run.boot != boot_id():
            return
        patience = Command.read(files.command).stop_timeout_s
        if run.supervisor.alive:
            run.supervisor.send(signal.SIGTERM)
            run.supervisor.wait(patience + _KILL_S)
        elif left := self._members(files):
            signal_all(left, signal.SIGTERM)
            self._await_end(files, patience)
        left = self._members(files)
        signal_all(left, signal.SIGKILL)
        run.supervisor.wait(_KILL_S)  # it writes down the end
        if left := self._await_end(files, _KILL_S, left):
            raise OperatorError(
                f"{name} is stopped but for {_list(left)}, which the kernel does not end: its driver may hang."
            )

    def _members(self, files: EngineDirectory) -> list[Process]:
        run = files.run()
        if run is None or run.boot != boot_id():
            return []
        return belonging(run.supervisor, run.main, f"{RUN_VARIABLE}={run.run}")

    def _await_end(self, files: EngineDirectory, seconds: float, known: Iterable[Process] = ()) -> list[Process]:
        """What is still there after at most `seconds`.

        A process that was seen counts until it is gone: one that is ending has lost its environment, and so what it was
        told by, a moment before it is.
        """
        deadline = time.monotonic() + seconds
        seen = {*known, *self._members(files)}
        while left := [process for process in seen if process.alive]:
            if time.monotonic() >= deadline:
                break
            left[0].wait(min(0.5, max(deadline - time.monotonic(), 0)))
            seen |= set(self._members(files))
        return left

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """Put what the operating system refuses into words."""
        try:
            yield
        except OSError as error:
            where = error.filename or self._home
            raise OperatorError(f"{name}: {where}: {error.strerror}. Mend that, and try again.") from None
        except subprocess.TimeoutExpired:
            raise OperatorError(f"{name} could not be started: its supervisor did not answer within 30 s.") from None
        except ValueError as error:
            raise OperatorError(f"{printable(str(error))}: install {name} anew.") from None


def _state_home() -> Path:
    given = os.environ.get("XDG_STATE_HOME", "")
    return Path(given) if given.startswith("/") else Path.home() / ".local" / "state"


def _list(processes: list[Process]) -> str:
    return ", ".join(f"{each.pid} {printable(title(each.pid))[:60]}".strip() for each in processes[:5])
