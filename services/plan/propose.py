"""Placements that will run, for a model on a box where none is given."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from types import MappingProxyType

from gpudeck.services.box.types import Box, ComputeCapability, Gpu
from gpudeck.services.memory.balance import balanced_partition
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import Finding, Judgement, Severity, VerdictState
from gpudeck.services.plan.links import link_rank, link_table, weakest_link
from gpudeck.services.plan.types import EngineSpec, Placement
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.parallel import tensor_sizes
from gpudeck.services.rules.rule import Rule


class Objective(str, Enum):
    """What a placement is chosen for."""

    CONTEXT = "context"  # the largest context, up to max-model-len, on the fewest and best linked cards
    CONCURRENCY = "concurrency"  # the most KV cache
    LATENCY = "latency"  # the fewest stages, and TP over good links only


NO_PLACEMENT = Rule(
    "no-placement",
    Severity.ERROR,
    "No placement would start",
    "Every placement that was weighed is blocked.",
    "gpudeck: services/plan/propose.py",
)
Proposal = tuple[EngineSpec, Judgement, str]
_NOTHING_USED: Mapping[int, int] = MappingProxyType({})
_MOST = 12  # proposals that are worth a look
# Where one card a stage stands among TP groups: behind NVLink and near PCIe, before groups across NUMA nodes.
_NO_TP = link_rank("NODE")


def propose(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    used: Mapping[int, int] = _NOTHING_USED,
    *,
    tensor_parallel: int | None = None,
    pipeline_parallel: int | None = None,
    objective: Objective = Objective.CONTEXT,
) -> tuple[Proposal, ...]:
    """Placements of `spec` that are not blocked, best first, each with one line why.

    `spec.placement` counts only for its replicas, and its layer_partition only for as many stages as it has entries.
    Ready ones come before cautions; what the objective then asks for is told at `Objective`.  A given size fixes that
    part of the shape.
    """
    found = [
        proposal
        for proposal in candidates(
            box, model, spec, used, tensor_parallel=tensor_parallel, pipeline_parallel=pipeline_parallel
        )
        if proposal[1].state is not VerdictState.BLOCKED
    ]
    return tuple(sorted(found, key=lambda proposal: _preference(box, proposal, objective))[:_MOST])


def candidates(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    used: Mapping[int, int] = _NOTHING_USED,
    *,
    tensor_parallel: int | None = None,
    pipeline_parallel: int | None = None,
) -> Iterator[Proposal]:
    """Every placement that is weighed, blocked ones too: what refuses a model that fits nowhere."""
    kv_heads = None if model.mla is not None else model.kv_heads
    copies = max(spec.placement.replicas, 1)
    sizes = tensor_sizes(model.attention_heads, kv_heads, model.vocab_size, len(box.gpus))
    for size in sizes if tensor_parallel is None else [tensor_parallel]:
        most = len(box.gpus) // max(size * copies, 1)
        stages = range(1, most + 1) if pipeline_parallel is None else [pipeline_parallel]
        for count in stages:
            seen: set[tuple[tuple[int, ...], ...]] = set()
            for cards in _card_sets(box, used):
                groups = _groups(box, cards, size, count * copies)
                if groups is not None and groups not in seen:
                    seen.add(groups)
                    yield _proposal(box, model, replace(spec, placement=Placement(groups, copies)), used)


def nearest(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    used: Mapping[int, int] = _NOTHING_USED,
    *,
    tensor_parallel: int | None = None,
    pipeline_parallel: int | None = None,
) -> Finding:
    """Why nothing is proposed: what blocks the placement that comes nearest to running."""
    asked = candidates(box, model, spec, used, tensor_parallel=tensor_parallel, pipeline_parallel=pipeline_parallel)
    best = min(asked, key=lambda proposal: _distance(proposal[1]), default=None)
    if best is None:
        shape = f"TP {tensor_parallel or 'any'} × PP {pipeline_parallel or 'any'}"
        return NO_PLACEMENT.finding(
            f"This box has too few cards of one kind for {max(spec.placement.replicas, 1)} × {shape}: it has "
            f"{len(box.gpus)} cards.",
            "Ask for a smaller shape.",
        )
    blocking = best[1].findings[0]
    stages = " | ".join(",".join(str(gpu) for gpu in stage) for stage in best[0].placement.stages)
    return NO_PLACEMENT.finding(
        f"No placement on this box would start.  The nearest, GPUs {stages}, is blocked: {blocking.message}",
        blocking.fix,
    )


def _distance(judgement: Judgement) -> tuple[int, int]:
    errors = sum(finding.severity is Severity.ERROR for finding in judgement.findings)
    return errors, -judgement.memory.kv_cache_tokens if judgement.memory is not None else 0


def _preference(box: Box, proposal: Proposal, objective: Objective) -> tuple[bool, tuple[int, ...]]:
    """What proposals are sorted by: cautions last, then as the objective asks, in ascending order."""
    spec, judgement, _ = proposal
    tokens = judgement.memory.kv_cache_tokens if judgement.memory is not None else 0
    length = judgement.memory.max_model_len if judgement.memory is not None else 0
    placement = spec.placement
    cards, stages, ranks = len(placement.gpus), placement.pipeline_parallel_size, placement.tensor_parallel_size
    quality = min(link_rank(weakest_link(box, stage)) for stage in placement.stages) if ranks > 1 else _NO_TP
    order: tuple[int, ...]
    if objective is Objective.CONTEXT:
        order = (-min(tokens, length), cards, -quality, stages, -tokens)
    elif objective is Objective.CONCURRENCY:
        order = (-tokens, cards, -quality, stages)
    else:
        order = (stages, -ranks if quality > _NO_TP else ranks, -quality, -tokens)
    return judgement.state is VerdictState.CAUTION, order


def _card_sets(box: Box, used: Mapping[int, int]) -> Iterator[list[Gpu]]:
    """The cards to choose from: each kind by itself, and all together; the one with the most free memory first."""
    kinds: dict[ComputeCapability, list[Gpu]] = {}
    for gpu in box.gpus:
        kinds.setdefault(gpu.compute_capability, []).append(gpu)
    sets = list(kinds.values())
    if len(kinds) > 1:
        sets.append(list(box.gpus))
    for cards in sets:
        yield sorted(cards, key=lambda gpu: (used.get(gpu.index, 0) - gpu.memory_bytes, gpu.index))


def _groups(box: Box, cards: Sequence[Gpu], size: int, count: int) -> tuple[tuple[int, ...], ...] | None:
    """`count` TP groups of `size` cards each, the best linked first taken; None where there are too few cards.

    A group never mixes compute capabilities.  Groups of the lowest one come first, since vLLM chooses kernels by the
    first card.
    """
    table = link_table(box)
    left = list(cards)
    groups: list[tuple[Gpu, ...]] = []
    for _ in range(count):
        grown = [group for seed in left if (group := _grown(seed, left, size, table)) is not None]
        if not grown:
            return None
        best = max(grown, key=lambda group: _quality(group, table))
        groups.append(best)
        left = [gpu for gpu in left if gpu not in best]
    groups.sort(key=lambda group: (group[0].compute_capability, min(gpu.index for gpu in group)))
    return tuple(tuple(sorted(gpu.index for gpu in group)) for group in groups)


def _grown(seed: Gpu, cards: Sequence[Gpu], size: int, table: Mapping[tuple[int, int], str]) -> tuple[Gpu, ...] | None:
    """A group that starts with `seed` and takes the card with the best links to it, one by one."""
    group = [seed]
    others = [gpu for gpu in cards if gpu is not seed and gpu.compute_capability == seed.compute_capability]
    while len(group) < size:
        if not others:
            return None
        ranked = [
            (min(link_rank(table[gpu.index, member.index]) for member in group), gpu.memory_bytes, -place)
            for place, gpu in enumerate(others)
        ]
        group.append(others.pop(-max(ranked)[2]))
    return tuple(group)


def _quality(group: Sequence[Gpu], table: Mapping[tuple[int, int], str]) -> tuple[int, int, int]:
    ranks = [link_rank(table[a.index, b.index]) for a in group for b in group if a is not b]
    return min(ranks, default=0), min(gpu.memory_bytes for gpu in group), sum(ranks)


def _proposal(box: Box, model: ModelFacts, spec: EngineSpec, used: Mapping[int, int]) -> Proposal:
    if spec.layer_partition is None or len(spec.layer_partition) != spec.placement.pipeline_parallel_size:
        spec = replace(spec, layer_partition=None)
        spec = replace(spec, layer_partition=_worthwhile_partition(box, model, spec, used))
    return spec, judge(box, model, spec, used=used), _why(box, spec)


def _worthwhile_partition(
    box: Box, model: ModelFacts, spec: EngineSpec, used: Mapping[int, int]
) -> tuple[int, ...] | None:
    """A balanced partition where the stages' cards differ; among equal cards vLLM's own split is kept."""
    if len({gpu.memory_bytes - used.get(gpu.index, 0) for gpu in box.gpus if gpu.index in spec.placement.gpus}) < 2:
        return None
    return balanced_partition(box, model, spec)


def _why(box: Box, spec: EngineSpec) -> str:
    placement = spec.placement
    parts = []
    if len(placement.gpus) == 1:
        gpu = box.gpu(placement.gpus[0])
        parts.append(
            f"one card, no links to wait for: GPU {placement.gpus[0]} ({gpu.name if gpu is not None else '?'})"
        )
    elif placement.tensor_parallel_size == 1:
        parts.append(f"one card a stage: only activations cross the links between {len(placement.gpus)} cards")
    else:
        links = {weakest_link(box, stage) for stage in placement.stages}
        weakest = min(links, key=link_rank)
        parts.append(f"TP groups of {placement.tensor_parallel_size} cards of one kind, joined by {weakest}")
    if spec.layer_partition is not None:
        parts.append(f"layers {','.join(str(layers) for layers in spec.layer_partition)} use the larger cards' memory")
    if placement.replicas > 1:
        parts.append(f"{placement.replicas} copies")
    return "; ".join(parts)
