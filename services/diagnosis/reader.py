"""Reads a log line by line and tells the failures in it, the decisive one first."""

import ast
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpudeck.services.diagnosis.entry import Advice, Entry, Found
from gpudeck.services.diagnosis.envelope import unwrapped
from gpudeck.services.diagnosis.kernel import XID
from gpudeck.services.diagnosis.table import ENTRIES, LONGEST, known_failure
from gpudeck.services.diagnosis.types import Around, Diagnosis, RunFacts
from gpudeck.services.engine.failure import is_wrapper
from gpudeck.services.engine.loglines import LogParts, take_apart
from gpudeck.services.engine.phases import Phase, PhaseTracker
from gpudeck.services.text import printable

_SHOWN = 2000
_GIVEN = "non-default args: "
_QUIET = ("DEBUG", "INFO")
_OUTSIDE = (XID, "host-memory")  # the kernel's words belong to no run
_MESSAGE_LINES = 6
# What the table does not know: the line itself is then all there is to say.
_UNKNOWN = Entry(
    "unknown-failure",
    "A failure that gpudeck does not know",
    (),
    "The engine ended for this reason, which gpudeck does not know.",
    "Read the lines above it; vLLM's issues may have the same words.",
    "",
)


@dataclass(frozen=True, slots=True)
class _Hit:
    """The first line of a run that an entry knows."""

    entry: Entry
    text: str
    number: int
    writer: str
    facts: RunFacts


@dataclass(slots=True)
class _Run:
    """One run of an engine, as far as it has been read."""

    tracker: PhaseTracker = field(default_factory=PhaseTracker)
    hits: dict[str, _Hit] = field(default_factory=dict)  # by entry
    phase: Phase = Phase.STARTING  # the last one that was no end
    given: Mapping[str, object] = field(default_factory=dict)
    began: int = 0  # the number of the line before it

    @property
    def failed(self) -> bool:
        return self.tracker.standing.phase is Phase.FAILED or any(not hit.entry.notice for hit in self.hits.values())


class LogReader:
    """Feed every line; `diagnoses` may be asked at any time.

    Wrappers ("see root cause above") are never a diagnosis.  Several runs may follow each other, as in a journal: told
    is the last one in which something went wrong.  Holds no clock and does no I/O; memory is bounded.
    """

    def __init__(self) -> None:
        self._run = _Run()
        self._failed_run: _Run | None = None
        self._outside: dict[str, _Hit] = {}
        self._number = 0

    def feed(self, text: str) -> None:
        """Read one line of a file; carriage returns within it are a bar's strokes."""
        self._number += 1
        for line in unwrapped(text):
            for stroke in line.split("\r") if "\r" in line else (line,):
                if stroke:
                    self._read(stroke[:LONGEST])

    def feed_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.feed(line)

    def diagnoses(self, around: Around | None = None) -> tuple[Diagnosis, ...]:
        """What was found: the decisive line first, then what else went wrong, then what is worth knowing."""
        run = self._run if self._run.failed or self._failed_run is None else self._failed_run
        around = around or Around()
        decisive = _decisive(run)
        covered = {rule for hit in (decisive, *run.hits.values()) if hit is not None for rule in hit.entry.covers}
        rest = [
            hit
            for rule, hit in {**run.hits, **self._outside}.items()
            if (decisive is None or rule != decisive.entry.id) and rule not in covered
        ]
        rest.sort(key=lambda hit: (hit.entry.notice, hit.number))
        hits = [decisive, *rest] if decisive is not None else rest
        return tuple(told(hit.entry, hit.text, hit.number, hit.writer, hit.facts, around) for hit in hits)

    def _read(self, text: str) -> None:
        run = self._run
        if run.tracker.begins_anew(text):
            if run.failed:
                self._failed_run = run
            run = self._run = _Run(began=self._number - 1)
        run.tracker.feed(text)
        phase = run.tracker.standing.phase
        if phase not in (Phase.FAILED, Phase.STOPPING):
            run.phase = phase
        parts = take_apart(text)
        if parts.text.startswith(_GIVEN):
            run.given = _given(parts.text)
        if parts.level in _QUIET or _is_code(parts.text) or is_wrapper(parts.text):
            return
        for entry in ENTRIES:
            hits = self._outside if entry.id in _OUTSIDE else run.hits
            if entry.id in hits or (parts.level == "WARNING" and not entry.notice):
                continue
            if entry.search(parts.text):
                hits[entry.id] = self._hit(entry, parts)

    def _hit(self, entry: Entry, parts: LogParts) -> _Hit:
        return _Hit(entry, parts.text, self._number, parts.writer, _facts(self._run))


def _is_code(text: str) -> bool:
    """A line that a traceback quotes, which holds a message before it is filled in."""
    return text.startswith(("    ", '  File "')) and "NVRM: " not in text


def _facts(run: _Run) -> RunFacts:
    return RunFacts(run.phase, run.tracker.standing.kv_cache_tokens, run.given)


def _given(text: str) -> Mapping[str, object]:
    """What stands behind `non-default args: `, as Python writes a dictionary; empty where it is cut off or another."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            found = ast.literal_eval(text.removeprefix(_GIVEN).strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return {name: value for name, value in found.items() if isinstance(name, str)} if isinstance(found, dict) else {}


def _decisive(run: _Run) -> _Hit | None:
    """The line that says why the run failed, by the entry that knows it; None where it did not fail."""
    standing = run.tracker.standing
    line = standing.decisive if standing.phase is Phase.FAILED else None
    if line is None:
        failures = [hit for hit in run.hits.values() if not hit.entry.notice]
        return min(failures, key=lambda hit: hit.number, default=None)
    text, number = line.text[:LONGEST], run.began + line.number
    entry = known_failure(text)
    if entry is None:
        # A message of several lines, of which another than the exception's own says it.
        near = [hit for hit in run.hits.values() if not hit.entry.notice and 0 <= hit.number - number <= _MESSAGE_LINES]
        return min(near, key=lambda hit: hit.number, default=_Hit(_UNKNOWN, text, number, line.writer, _facts(run)))
    return _Hit(entry, text, number, line.writer, _facts(run))


def told(entry: Entry, text: str, number: int, writer: str, run: RunFacts, around: Around) -> Diagnosis:
    """What an entry says to a line that it knows."""
    text = text[:LONGEST]
    match = entry.search(text)
    advice = entry.explain(Found(match, text, writer, run, around)) if entry.explain and match else Advice()
    return Diagnosis(
        rule=entry.id,
        line=printable(text.strip())[:_SHOWN],
        line_number=number,
        meaning=advice.meaning or entry.meaning,
        fix=advice.fix or entry.fix,
        change=advice.change,
    )
