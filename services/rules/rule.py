"""What a rule is, and what rules look at."""

from dataclasses import dataclass

from gpudeck.services.box.types import GIB, Box, Gpu
from gpudeck.services.memory.plan import MemoryDetail
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.changes import Change
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition: `why` is its reason in vLLM's terms, `source` where that stands."""

    id: str
    severity: Severity
    title: str
    why: str
    source: str

    def finding(self, message: str, fix: str | None = None, change: Change | None = None) -> Finding:
        return Finding(self.id, self.severity, message, fix, change)


@dataclass(frozen=True, slots=True)
class Plan:
    """A spec on a box, with what several rules need: the cards that exist, in rank order, each once."""

    box: Box
    spec: EngineSpec
    gpus: tuple[Gpu, ...]
    around: Surroundings

    @property
    def tensor_parallel(self) -> int:
        return self.spec.placement.tensor_parallel_size

    @property
    def stages(self) -> int:
        return self.spec.placement.pipeline_parallel_size

    def stage_gpus(self, stage: tuple[int, ...]) -> tuple[Gpu, ...]:
        return tuple(gpu for card in stage if (gpu := self.box.gpu(card)) is not None)


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """A plan with its model; `memory` is None where the placement is too broken to be computed."""

    plan: Plan
    model: ModelFacts
    memory: MemoryDetail | None


def plan_of(box: Box, spec: EngineSpec, around: Surroundings) -> Plan:
    known = {gpu.index: gpu for gpu in box.gpus}
    cards = dict.fromkeys(spec.placement.gpus)
    return Plan(box, spec, tuple(known[card] for card in cards if card in known), around)


def gib(size: float) -> str:
    """Bytes as GiB with one decimal, two below 1 GiB."""
    return f"{size / GIB:.1f} GiB" if abs(size) >= GIB else f"{size / GIB:.2f} GiB"


def named(gpu: Gpu) -> str:
    return f"GPU {gpu.index} ({gpu.name})"


def listed(words: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
