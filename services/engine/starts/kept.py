"""What is kept of an engine's starts that reached ready: how long their phases took, and the last specs.

One small JSON file an engine, `<home>/<scope>-<unit>.json`.  It is a help and no record: a file that can not be read
counts as none, and one that can not be written is left.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudeck.services.engine.filelock import holding
from gpudeck.services.engine.phases import Phase
from gpudeck.services.engine.starts.times import PhaseTimes
from gpudeck.services.engine.types import UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan import spec_json
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.whole_file import write_whole

_MOST_STARTS = 20
_SPECS = 2  # that which runs, and the one before it
_LARGEST = 1 << 20
_SAME_RUN_S = 2.0  # two gpudecks that saw one start date it alike
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptStart:
    """One start that reached ready.  `spec` is a digest."""

    spec: str
    began: float
    times: PhaseTimes


@dataclass(frozen=True, slots=True)
class Kept:
    """Starts oldest first, specs that reached ready newest first."""

    starts: tuple[KeptStart, ...] = ()
    ready: tuple[EngineSpec, ...] = ()

    def times(self, spec: EngineSpec | None) -> tuple[PhaseTimes, ...]:
        """Of earlier starts of the same spec."""
        digest = _digest(spec) if spec is not None else None
        return tuple(start.times for start in self.starts if start.spec == digest)

    def present(self, began: float | None) -> PhaseTimes | None:
        """Of the run that began then, where it was seen to reach ready."""
        if began is None:
            return None
        return next((start.times for start in self.starts if abs(start.began - began) < _SAME_RUN_S), None)

    def other_than(self, spec: EngineSpec | None) -> EngineSpec | None:
        """The last spec that reached ready and is another than this one."""
        return next((each for each in self.ready if each != spec), None)


class StartBook:
    """The files of all engines.  Its methods block for as long as a small file takes."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def of(self, state: UnitState) -> Kept:
        try:
            with self._path(state).open("rb") as file:
                return _from_document(json.loads(file.read(_LARGEST)))
        except (OSError, ValueError, OperatorError, KeyError, TypeError, RecursionError):
            return Kept()

    def keep(self, state: UnitState, times: PhaseTimes) -> None:
        """Note a start that has just reached ready."""
        if state.spec is None or state.since is None:
            return
        path = self._path(state)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with holding(path.with_suffix(".lock"), state.name):
                known = self.of(state)
                starts = [each for each in known.starts if abs(each.began - state.since) >= _SAME_RUN_S]
                if times.phases:
                    starts.append(KeptStart(_digest(state.spec), state.since, times))
                ready = known.ready
                if state.managed:
                    ready = (state.spec, *(each for each in ready if each != state.spec))[:_SPECS]
                document = _document(Kept(tuple(starts[-_MOST_STARTS:]), ready))
                write_whole(path, json.dumps(document).encode())
        except (OSError, OperatorError) as error:
            log.warning("%s is not kept: %s", path, error)

    def forget(self, state: UnitState) -> None:
        """The engine was removed."""
        path = self._path(state)
        for each in (path, path.with_suffix(".lock")):
            with suppress(OSError):
                each.unlink()

    def _path(self, state: UnitState) -> Path:
        return self._home / f"{state.scope.value}-{state.unit.removesuffix('.service')}.json"


def _digest(spec: EngineSpec) -> str:
    return hashlib.sha256(spec_json.dumps(spec).encode()).hexdigest()[:16]


def _document(kept: Kept) -> dict[str, Any]:
    return {
        "starts": [
            {"spec": start.spec, "began": start.began, "phases": [[phase.value, s] for phase, s in start.times.phases]}
            for start in kept.starts
        ],
        "ready": [spec_json.dumps(spec) for spec in kept.ready],
    }


def _from_document(document: Mapping[str, Any]) -> Kept:
    starts = tuple(
        KeptStart(
            str(each["spec"]),
            float(each["began"]),
            PhaseTimes(tuple((Phase(phase), float(seconds)) for phase, seconds in each["phases"])),
        )
        for each in document["starts"]
    )
    return Kept(starts, tuple(spec_json.loads(text) for text in document["ready"]))
