"""A measured run: what was asked of which engines, and what came of it.  Times are in seconds, memory in bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from gpudeck.services.plan.types import EngineSpec


class Generator(str, Enum):
    """Who makes the load."""

    VLLM = "vllm bench serve"
    OWN = "gpudeck"


@dataclass(frozen=True, slots=True)
class Workload:
    """What every request is, and how many there are.  Two runs compare where their workloads are equal.

    Either `concurrency` is the axis (closed loop: each request waits for one before it) or `rates` (open loop: requests
    a second, whatever the engine makes of it).
    """

    input_tokens: int = 512
    output_tokens: int = 128  # exactly: the end of a text is ignored
    concurrency: tuple[int, ...] = (1, 4, 16)
    rates: tuple[float, ...] = ()
    requests: int | None = None  # of each level; None: `requests_at`
    seed: int = 0
    generator: Generator = Generator.OWN

    @property
    def levels(self) -> tuple[float, ...]:
        """The axis: concurrency, or requests a second."""
        return self.rates or tuple(float(one) for one in self.concurrency)

    @property
    def open_loop(self) -> bool:
        return bool(self.rates)

    def requests_at(self, level: float) -> int:
        """Enough to fill the engine three times over and for percentiles to mean something; ten seconds of a rate."""
        if self.requests is not None:
            return self.requests
        return max(8, round(10 * level)) if self.open_loop else max(8, round(3 * level))

    def words(self) -> str:
        """ "512 + 128 tokens, seed 0, by gpudeck"."""
        loop = "open loop" if self.open_loop else "closed loop"
        count = f", {self.requests} requests a level" if self.requests is not None else ""
        size = f"{self.input_tokens:,} + {self.output_tokens:,} tokens"
        return f"{size}, {loop}{count}, seed {self.seed}, by {self.generator.value}"


@dataclass(frozen=True, slots=True)
class Limits:
    """What an operator wants of the time to the first token."""

    first_token: float = 0.2  # of the median request
    p99: float = 1.0  # of 99 in 100 requests


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it went.  Times count from its sending."""

    target: int  # which of the engines
    began: float  # of a monotonic clock
    first: float | None = None
    gaps: tuple[float, ...] = ()  # between the pieces of the answer
    seconds: float = 0.0  # until its end, or its failure
    input_tokens: int = 0
    output_tokens: int = 0
    error: str = ""  # why it failed, in a sentence

    @property
    def each_token(self) -> float | None:
        """Seconds for each token after the first; a piece may hold several."""
        if self.error or self.first is None or self.output_tokens < 2:
            return None
        return max(self.seconds - self.first, 0.0) / (self.output_tokens - 1)


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles of one figure over the requests of a level."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class QueueTime:
    """How long requests waited in the engine.  The mean is exact; p99 is as fine as the buckets, the first of which
    ends at `finest`.
    """

    mean: float
    p99: float
    finest: float


@dataclass(frozen=True, slots=True)
class CardUse:
    """A card over the time of a level; None is what it does not report."""

    gpu: int
    utilization: float | None = None  # mean percent of the time in which something ran on it, waiting for others too
    memory_busy: float | None = None  # mean percent of the time in which its memory was read or written
    memory_bytes: int | None = None  # the most that was in use
    power_w: float | None = None  # mean


@dataclass(frozen=True, slots=True)
class Level:
    """One point of the axis."""

    level: float  # concurrency, or requests a second
    wanted: int  # requests
    completed: int
    errors: Mapping[str, int] = field(default_factory=dict)  # failed requests by their sentence
    seconds: float = 0.0  # from the first request to the last end
    input_tokens: int = 0
    output_tokens: int = 0
    first_token: Spread | None = None
    between_tokens: Spread | None = None
    each_token: Spread | None = None
    end_to_end: Spread | None = None
    queue: QueueTime | None = None  # of several engines, that of the one that kept them waiting longest
    cards: tuple[CardUse, ...] = ()
    estimated: float | None = None  # tokens a second of one request after its first, by the plan's estimate
    partial: bool = False  # it was cancelled

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    @property
    def tokens_per_s(self) -> float | None:
        return self.output_tokens / self.seconds if self.seconds > 0 and self.completed else None

    @property
    def decode_tokens_per_s(self) -> float | None:
        """Of one request after its first token, in the middle."""
        return 1 / self.each_token.p50 if self.each_token is not None and self.each_token.p50 > 0 else None

    @property
    def joules(self) -> float | None:
        """What all its cards took together; None where one of them does not tell."""
        powers = [card.power_w for card in self.cards]
        told = [power for power in powers if power is not None]
        return sum(told) * self.seconds if told and len(told) == len(powers) and self.seconds > 0 else None

    @property
    def tokens_per_joule(self) -> float | None:
        joules = self.joules
        return self.output_tokens / joules if joules and self.completed else None

    @property
    def estimate_error(self) -> float | None:
        """How far the estimate is off: 0.25 is a quarter too high."""
        measured = self.decode_tokens_per_s
        return self.estimated / measured - 1 if self.estimated is not None and measured else None

    def within(self, limits: Limits) -> bool | None:
        """Whether the limits are kept and nothing failed; None where no request was answered."""
        if self.first_token is None:
            return None
        return not self.failed and self.first_token.p50 <= limits.first_token and self.first_token.p99 <= limits.p99


@dataclass(frozen=True, slots=True)
class Target:
    """One engine of a run, as it was then.  `spec` is None for one that is elsewhere."""

    name: str
    url: str
    model: str  # as it is served
    vllm_version: str | None = None
    spec: EngineSpec | None = None
    layers: tuple[int, ...] = ()  # of each stage


@dataclass(frozen=True, slots=True)
class CardFacts:
    gpu: int
    name: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Result:
    """A run as it is kept."""

    id: str  # "20261201-140312-chat": the name of its file
    at: str  # ISO 8601 in UTC
    targets: tuple[Target, ...]
    workload: Workload
    limits: Limits
    levels: tuple[Level, ...]
    box: str = ""  # its name, driver included
    cards: tuple[CardFacts, ...] = ()  # those of the engines
    partial: bool = False  # it was cancelled: levels are missing, or the last is not whole
    notes: tuple[str, ...] = ()  # what one has to know beside the figures

    @property
    def model(self) -> str:
        """What was served, where all engines serve the same."""
        return " + ".join(dict.fromkeys(target.spec.model if target.spec else target.model for target in self.targets))
