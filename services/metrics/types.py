"""What an engine counts of itself, at one moment and over a stretch of time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Counter(str, Enum):
    """What only grows while an engine runs."""

    PROMPT_TOKENS = "prompt tokens"
    GENERATION_TOKENS = "generation tokens"
    PREEMPTIONS = "preemptions"
    PREFIX_QUERIES = "prefix cache queries"  # in tokens since 0.9, in blocks before: only their ratio is used
    PREFIX_HITS = "prefix cache hits"


class Timing(str, Enum):
    """What vLLM keeps a histogram of, in seconds."""

    FIRST_TOKEN = "time to first token"  # noqa: S105 - no password
    INTER_TOKEN = "inter-token latency"  # noqa: S105
    END_TO_END = "end-to-end latency"
    QUEUE = "queue time"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative counts below each bound, as Prometheus has them; the last bound is infinite."""

    bounds: tuple[float, ...] = ()
    counts: tuple[float, ...] = ()

    @property
    def count(self) -> float:
        return self.counts[-1] if self.counts else 0.0


@dataclass(frozen=True, slots=True)
class EngineSample:
    """One reading of /metrics, over all of a server's engine cores; None is what this vLLM does not tell."""

    at: float  # monotonic seconds
    running: int | None = None  # requests being computed
    waiting: int | None = None  # requests in the queue
    kv_cache_usage: float | None = None  # 0 to 1, of the fullest core
    kv_cache_tokens: int | None = None  # what the cache of one core holds
    counters: Mapping[Counter, float] = field(default_factory=dict)
    timings: Mapping[Timing, Histogram] = field(default_factory=dict)
    outcomes: Mapping[str, float] = field(default_factory=dict)  # finished requests by vLLM's reason: stop, length …


@dataclass(frozen=True, slots=True)
class EngineRates:
    """What happened over the last `span` seconds.  None is what can not be told, for lack of requests too."""

    span: float
    latest: EngineSample
    prompt_tokens_per_s: float | None = None
    generation_tokens_per_s: float | None = None
    prefix_hit_rate: float | None = None  # 0 to 1
    preemptions: int = 0
    percentiles: Mapping[Timing, Mapping[int, float]] = field(default_factory=dict)  # seconds by 50, 95, 99
    outcomes: Mapping[str, int] = field(default_factory=dict)
