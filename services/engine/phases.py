"""Where an engine's start stands, told from what vLLM logs.

The texts are vLLM's own, of 0.6 to 0.33 and of its CPU build.  A start goes through the phases in the order of `Phase`
and may leave some out (no compiling with --enforce-eager, nothing to load with dummy weights); several workers report
the same phase, so that the furthest one counts.
"""

import re
from dataclasses import dataclass, replace
from enum import Enum

from gpudeck.services.engine.failure import DecisiveLine, FailureReader
from gpudeck.services.engine.loglines import LogParts, take_apart


class Phase(str, Enum):
    STARTING = "starting"  # the program is imported
    INITIALISING = "initialising"  # configuration read, engine and workers come up
    LOADING = "loading weights"
    PROFILING = "profiling memory"
    COMPILING = "compiling"
    CAPTURING = "capturing graphs"
    LISTENING = "listening"  # the server is up
    READY = "ready"  # and its /health and /v1/models have answered, which the log does not tell
    STOPPING = "stopping"
    FAILED = "failed"

    @property
    def starting_up(self) -> bool:
        return _ORDER[self] < _ORDER[Phase.READY]


_ORDER = {phase: place for place, phase in enumerate(Phase)}


@dataclass(frozen=True, slots=True)
class Standing:
    """A start at one moment."""

    phase: Phase = Phase.STARTING
    percent: int | None = None  # of this phase, where vLLM draws a bar
    entered: tuple[tuple[Phase, float | None], ...] = ()  # the phases so far and when each began
    moved_at: float | None = None  # when it last got further: a phase, or a step of its bar; epoch seconds
    server: str | None = None  # "http://127.0.0.1:8000", as vLLM names it
    weights_gib: float | None = None  # of the rank that reported last
    kv_cache_tokens: int | None = None
    max_concurrency: float | None = None
    decisive: DecisiveLine | None = None  # why it failed; set with FAILED

    @property
    def decisive_line(self) -> str | None:
        return self.decisive.text if self.decisive else None


_SIGNS: tuple[tuple[Phase, re.Pattern[str]], ...] = tuple(
    (phase, re.compile(pattern))
    for phase, pattern in (
        (Phase.LISTENING, r"Starting vLLM (API )?server|Started server process|Application startup complete"),
        (Phase.CAPTURING, r"Capturing (the model for )?(CUDA graphs|cudagraphs|CUDA graph shapes)|Graph capturing fin"),
        (
            Phase.COMPILING,
            r"Using cache directory: .* for vLLM's torch\.compile|Start compiling function|Dynamo bytecode transform"
            r"|Compiling a graph for|torch\.compile takes|Warming up model for the compilation"
            r"|Directly load the (compiled graph|compilation artifacts|AOT compilation)",
        ),
        (
            Phase.PROFILING,
            r"Model loading took|Loading model weights took|Memory profiling (takes|results)|Available KV cache memory"
            r"|Profiling CUDA graph memory|Encoder cache will be initialized|Explicitly set \(.*\) GiB for KV cache"
            r"|(GPU|CPU) KV cache size|# (GPU|CPU|cuda|cpu) blocks",
        ),
        (
            Phase.LOADING,
            r"Starting to load model|Loading model from scratch|Loading weights|Loading \S+ checkpoint shards"
            r"|Loading safetensors|Multi-thread loading shards|Using model weights format|Time spent downloading",
        ),
        (
            Phase.INITIALISING,
            r"Resolved architecture|Initializing an? (V\d )?LLM engine|non-default args|world_size=\d+ rank="
            r"|is assigned as DP rank|Using max model len|vLLM API server version",
        ),
    )
)
_BAR = re.compile(
    r"^(?P<label>(?:Loading|Multi-thread loading|Capturing)\b[^%|]*?):\s+(?P<percent>\d{1,3})% ?(?:Completed|\|)"
)
_NEW_RUN = re.compile(r"^(vLLM API server version|non-default args: )")
_STOPPING = re.compile(r"\[shutdown\] API server: shutdown triggered|^Shutting down$|^Application shutdown complete")
# Printed before or instead of a traceback once the engine is lost, in the start or later.
_LOST = re.compile(
    r"EngineCore (failed to start|encountered a fatal error|hit an exception)|Engine core initialization failed"
    r"|Engine process failed to start|EngineDeadError|Engine loop is not running"
    r"|(engine core|Engine core proc|Worker proc) .*(died|exited) unexpectedly"
)
_SERVER = re.compile(r"Starting vLLM (?:API )?server(?: \d+)? (?:on|at) (\S+)")
_WEIGHTS = re.compile(r"(?:Model loading|Loading model weights) took ([\d.]+) Gi?B")
_KV_TOKENS = re.compile(r"KV cache size: ([\d,]+) tokens")
_CONCURRENCY = re.compile(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x")
# No line that any of the patterns above knows is without one of these: most of a busy engine's lines are told from them
# in a tenth of the time that the patterns take.
WORDS = (
    *("oading", "to load", "Starting vLLM", "Started server", "Application s", "apturing", "Using ", "ompil"),
    *("bytecode", "Warming up", "Directly load", "rofiling", "KV cache size", "KV cache memory", "for KV cache"),
    *("Encoder cache", " blocks", "checkpoint", "Time spent", "Resolved a", "Initializing a", "non-default"),
    *("world_size", "assigned", "API server", "hutdown", "Shutting down", "EngineCore", "ngine core"),
    *("Engine process", "EngineDeadError", "Engine loop", "unexpectedly", "Maximum concurrency"),
)
PATTERNS = (*(sign for _, sign in _SIGNS), _NEW_RUN, _STOPPING, _LOST, _SERVER, _WEIGHTS, _KV_TOKENS, _CONCURRENCY)


def _may_tell(text: str) -> bool:
    for word in WORDS:  # noqa: SIM110 (a generator takes three times as long)
        if word in text:
            return True
    return False


class PhaseTracker:
    """Reads one engine's log from the beginning of a run and says where the start stands.

    A following run in the same log (a restart) begins anew by itself.  Holds no clock and does no I/O.
    """

    def __init__(self) -> None:
        self.standing = Standing()
        self._failure = FailureReader()
        self._number = 0

    def begins_anew(self, text: str) -> bool:
        """Whether this line, which is yet to be fed, is the first of a following run."""
        here = (Phase.STARTING, Phase.INITIALISING)
        return self.standing.phase not in here and bool(_NEW_RUN.match(take_apart(text).text))

    def feed(self, text: str, at: float | None = None) -> bool:
        """Read one line (carriage returns within it are a bar's strokes); True where the standing changed.

        `at` is when it was written, in seconds since the epoch: it becomes the time that a phase was entered.
        """
        before = self.standing
        self._number += 1
        for stroke in text.split("\r") if "\r" in text else (text,):
            if stroke:
                self._read(take_apart(stroke), at)
        return self.standing != before

    def answered(self, at: float | None = None) -> bool:
        """The engine's /health and /v1/models answer: it is ready.  True where that is news."""
        if not self.standing.phase.starting_up:
            return False
        self._enter(Phase.READY, at)
        return True

    def _read(self, parts: LogParts, at: float | None) -> None:
        text = parts.text
        telling = _may_tell(text)
        if telling and _NEW_RUN.match(text) and self.standing.phase not in (Phase.STARTING, Phase.INITIALISING):
            self.standing = Standing()
            self._failure = FailureReader()
        self._failure.read(parts, self._number)
        phase = self.standing.phase
        # Up to the moment that it listens any traceback ends the start; later on it may be one request's.
        fatal = self._failure.raised and parts.level is None and _ORDER[phase] < _ORDER[Phase.LISTENING]
        if phase not in (Phase.FAILED, Phase.STOPPING) and (fatal or (telling and _LOST.search(text))):
            self._enter(Phase.FAILED, at)
        if self.standing.phase is Phase.FAILED:
            self.standing = replace(self.standing, decisive=self._failure.decisive)
            return
        if not telling:
            return
        if _STOPPING.search(text) and phase is not Phase.STOPPING:
            self._enter(Phase.STOPPING, at)
            return
        if not phase.starting_up:
            return
        self._progress(text, at)
        self._facts(text)

    def _progress(self, text: str, at: float | None) -> None:
        for phase, sign in _SIGNS:
            if sign.search(text):
                if _ORDER[phase] > _ORDER[self.standing.phase] or not self.standing.entered:
                    self._enter(phase, at)
                if phase is self.standing.phase and (bar := _BAR.match(text)):
                    self._bar(min(int(bar["percent"]), 100), at)
                return

    def _bar(self, percent: int, at: float | None) -> None:
        if percent != self.standing.percent:
            self.standing = replace(self.standing, percent=percent, moved_at=at)

    def _facts(self, text: str) -> None:
        if found := _SERVER.search(text):
            self.standing = replace(self.standing, server=found[1])
        elif found := _WEIGHTS.search(text):
            self.standing = replace(self.standing, weights_gib=float(found[1]))
        if found := _KV_TOKENS.search(text):
            self.standing = replace(self.standing, kv_cache_tokens=int(found[1].replace(",", "")))
        if found := _CONCURRENCY.search(text):
            self.standing = replace(self.standing, max_concurrency=float(found[1]))

    def _enter(self, phase: Phase, at: float | None) -> None:
        entered = (*self.standing.entered, (phase, at))
        self.standing = replace(self.standing, phase=phase, percent=None, entered=entered, moved_at=at)
