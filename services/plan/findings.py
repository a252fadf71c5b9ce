"""What is wrong, or worth knowing, about a plan on a box."""

from dataclasses import dataclass
from enum import Enum

from gpudeck.services.plan.changes import Change


class Severity(str, Enum):
    ERROR = "error"  # vLLM will not start, or will not run
    WARNING = "warning"  # it runs, at a cost or a risk
    INFO = "info"


class VerdictState(str, Enum):
    READY = "ready"
    CAUTION = "caution"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found by one rule: `message` says what and why, `fix` (a sentence) the way out where there is one.

    `change` is what the fix does to the spec, where a key can do it (`services/plan/changes.py` applies it).
    """

    rule: str
    severity: Severity
    message: str
    fix: str | None = None
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """Where one card's memory goes under a plan, in bytes.  The parts and `free` add up to the card's memory."""

    gpu: int
    weights: int
    kv_cache: int
    overhead: int  # activation peak, CUDA graphs, CUDA context, NCCL
    other: int  # processes that are there already
    free: int  # left after all of these; negative when the plan does not fit

    @property
    def total(self) -> int:
        return self.weights + self.kv_cache + self.overhead + self.other + self.free


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    per_gpu: tuple[GpuMemory, ...]
    kv_cache_tokens: int  # of one copy: the minimum over its ranks, which all take; of several copies the least
    max_concurrency: float  # requests of max-model-len tokens at once in that copy
    max_model_len: int  # the length that was assumed
    copies: tuple[int, ...] = ()  # tokens of each copy, where there are several: each has a cache of its own

    @property
    def total_tokens(self) -> int:
        """The tokens of all copies together."""
        return sum(self.copies) if self.copies else self.kv_cache_tokens

    @property
    def total_concurrency(self) -> float:
        """Requests of max-model-len tokens at once over all copies."""
        return self.max_concurrency * (self.total_tokens / self.kv_cache_tokens if self.kv_cache_tokens else 1)

    def tokens_of(self, copy: int) -> int:
        return self.copies[copy] if self.copies else self.kv_cache_tokens

    def gpu(self, index: int) -> GpuMemory | None:
        return next((part for part in self.per_gpu if part.gpu == index), None)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a plan: its findings, worst first, and the memory that it would take (None: can not be told)."""

    findings: tuple[Finding, ...] = ()
    memory: MemoryPlan | None = None
    layers: tuple[int, ...] | None = None  # layers a stage holds, stage by stage

    @property
    def state(self) -> VerdictState:
        severities = {finding.severity for finding in self.findings}
        if Severity.ERROR in severities:
            return VerdictState.BLOCKED
        return VerdictState.CAUTION if Severity.WARNING in severities else VerdictState.READY
