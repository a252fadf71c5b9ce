"""The directory of one embedded engine: what would run, what runs, how it ended, what it said.

| file | holds | written by |
| --- | --- | --- |
| spec.json | the spec that it was made from | install |
| command.json | the command and environment that run | install |
| secrets.env | further variables, keys and tokens among them | install |
| run.json, run.json.1 | the present or last run and its two processes, and the run before | supervisor, at the start |
| stopping | nothing; it stands while the engine is being stopped | supervisor |
| end.json, end.json.1 | how that run ended, and the one before | supervisor, at the end |
| engine.log, engine.log.1 | what this run said, and the one before (or the older part of a long log) | the engine |
| lock | nothing; held by the gpudeck that changes something | runner |

Standard library only: the supervisor imports it too.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpudeck.services.engine.processes import Process
from gpudeck.services.whole_file import write_whole

MADE_BY = "gpudeck"
_BEFORE = ".1"  # behind the names of files about the run before
_BESIDE_COMMAND = {"spec.json", "secrets.env", "stopping", "lock"} | {
    name + old for name in ("run.json", "end.json", "engine.log") for old in ("", _BEFORE)
}
RUN_VARIABLE = "GPUDECK_RUN"  # in the environment of every process of a run


@dataclass(frozen=True, slots=True)
class Command:
    """What a start runs, in the environment of whoever starts it with these variables on top."""

    unit: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    stop_timeout_s: float
    second_term_s: float | None  # when a stop repeats its SIGTERM

    def text(self) -> str:
        """The file, a word or variable a line, so that it can be read and compared."""
        document = {"made_by": MADE_BY} | asdict(self)
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> "Command":
        """Raises OSError, and ValueError for a file that is none of ours."""
        document = _load(path)
        try:
            if document["made_by"] != MADE_BY:
                raise ValueError(f"{path} was not written by gpudeck")
            second = document["second_term_s"]
            return cls(
                str(document["unit"]),
                tuple(str(word) for word in document["argv"]),
                {str(name): str(value) for name, value in document["environment"].items()},
                float(document["stop_timeout_s"]),
                None if second is None else float(second),
            )
        except (KeyError, TypeError, AttributeError):
            raise ValueError(f"{path} is not as gpudeck writes it") from None


@dataclass(frozen=True, slots=True)
class Run:
    run: str  # its own id
    boot: str
    since: float  # seconds since the epoch
    supervisor: Process
    main: Process  # what was executed; leader of the engine's session


@dataclass(frozen=True, slots=True)
class End:
    run: str
    at: float
    status: int | None  # the main process's, as waitpid gives it
    asked: bool  # a stop had been asked for


@dataclass(frozen=True, slots=True)
class EngineDirectory:
    path: Path

    @property
    def command(self) -> Path:
        return self.path / "command.json"

    @property
    def spec(self) -> Path:
        return self.path / "spec.json"

    @property
    def secrets(self) -> Path:
        return self.path / "secrets.env"

    @property
    def log(self) -> Path:
        return self.path / "engine.log"

    @property
    def previous_log(self) -> Path:
        return self.path / f"engine.log{_BEFORE}"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def stopping(self) -> bool:
        return (self.path / "stopping").exists()

    @property
    def abandoned(self) -> bool:
        """Whether it is what a broken off install or removal left: files of ours, or none, and no command."""
        names = {entry.name for entry in self.path.iterdir()}
        return all(name in _BESIDE_COMMAND or (name.startswith(".") and name.endswith(".new")) for name in names)

    def clear(self) -> None:
        """Remove all but the lock, which whoever clears it holds."""
        for entry in self.path.iterdir():
            if entry != self.lock:
                entry.unlink()

    def run(self, *, before: bool = False) -> Run | None:
        """The present or last run, or the one `before`; None without one and for a file that can not be read."""
        try:
            found = _load(self.path / f"run.json{_BEFORE if before else ''}")
            return Run(
                str(found["run"]),
                str(found["boot"]),
                float(found["since"]),
                Process(int(found["supervisor"]["pid"]), int(found["supervisor"]["started"])),
                Process(int(found["main"]["pid"]), int(found["main"]["started"])),
            )
        except (OSError, ValueError, OverflowError, KeyError, TypeError):
            return None

    def end(self, run: str, *, before: bool = False) -> End | None:
        """How that run ended; None while it runs, and where its supervisor was killed."""
        try:
            found = _load(self.path / f"end.json{_BEFORE if before else ''}")
            status = found["status"]
            end = End(
                str(found["run"]), float(found["at"]), None if status is None else int(status), bool(found["asked"])
            )
        except (OSError, ValueError, OverflowError, KeyError, TypeError):
            return None
        return end if end.run == run else None

    def write_run(self, run: Run) -> None:
        write(self.path / "run.json", json.dumps(asdict(run)))

    def forget_run(self) -> None:
        """It never ran."""
        (self.path / "run.json").unlink(missing_ok=True)

    def write_end(self, end: End) -> None:
        write(self.path / "end.json", json.dumps(asdict(end)))

    def write_stopping(self) -> None:
        (self.path / "stopping").touch()

    def begin(self) -> None:
        """Make room for the next run: what is told of the last one becomes that of the one before."""
        for name in ("engine.log", "end.json", "run.json"):
            before = self.path / f"{name}{_BEFORE}"
            before.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                (self.path / name).replace(before)
        (self.path / "stopping").unlink(missing_ok=True)


def write(path: Path, text: str) -> None:
    """Replace a file whole or not at all; only its owner may read it, since an environment can hold a key."""
    write_whole(path, text.encode())


def _load(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        document = None
    if not isinstance(document, dict):
        raise ValueError(f"{path} is not as gpudeck writes it")
    return document
