"""A rough speed of decoding, to compare placements with."""

from dataclasses import dataclass

from gpudeck.services.box.types import Box
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import MemoryPlan
from gpudeck.services.plan.types import EngineSpec

BASIS = (
    "one request: each token reads the weights of every stage once from memory, at the cards' peak bandwidth; links, "
    "KV cache and kernel launches are left out, so compare placements by it and expect less"
)


@dataclass(frozen=True, slots=True)
class Estimate:
    decode_tokens_per_s: float
    basis: str = BASIS


def decode_estimate(box: Box, model: ModelFacts, spec: EngineSpec, memory: MemoryPlan) -> Estimate | None:
    """Tokens a second of a single request; None where a card's memory bandwidth is not known.

    Stages work one after the other on one request; within a stage the slowest rank counts.  Of a mixture of experts
    only the chosen experts are read.
    """
    share = _read_share(model)
    seconds = 0.0
    for stage in spec.placement.stages[: max(spec.placement.pipeline_parallel_size, 1)]:
        slowest = 0.0
        for card in stage:
            gpu, part = box.gpu(card), memory.gpu(card)
            if gpu is None or part is None or not gpu.memory_bandwidth_gbs:
                return None
            slowest = max(slowest, part.weights * share / (gpu.memory_bandwidth_gbs * 1e9))
        seconds += slowest
    return Estimate(1 / seconds) if seconds > 0 else None


def _read_share(model: ModelFacts) -> float:
    """The part of all weights that one token reads."""
    experts, layout = model.experts, model.weights
    if experts is None or layout is None or model.parameters is None or model.parameters <= 0:
        return 1.0
    matrices = 3 if model.gated_mlp else 2
    sparse = sum(1 for layer in layout.layers if layer == layout.layers[-1])
    routed = sparse * experts.count * matrices * model.hidden_size * experts.intermediate_size
    idle = routed * (1 - min(experts.per_token / experts.count, 1.0))
    return min(max(1 - idle / model.parameters, 0.01), 1.0)
