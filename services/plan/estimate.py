"""A rough speed of decoding, to compare placements with."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gpudeck.services.box.types import Box, Gpu
from gpudeck.services.memory.partition import partition_of
from gpudeck.services.memory.settings import settings_for
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import GpuMemory, MemoryPlan
from gpudeck.services.plan.links import link_table, weakest_of
from gpudeck.services.plan.speeds import all_reduce_seconds, assumed_cards, card_speed, link_speed, slot
from gpudeck.services.plan.types import EngineSpec

CONTEXT = 4096  # tokens that the single request has behind it
_LAYER = 10e-6  # seconds of a layer's kernels beyond reading and computing, with CUDA graphs
_STEP = 0.5e-3  # seconds of a step for scheduling and sampling


@dataclass(frozen=True, slots=True)
class Estimate:
    """Ratios to compare placements by, not promises."""

    decode_tokens_per_s: float  # of a single request
    throughput_tokens_per_s: float  # over all copies, with as many requests at once as the KV cache holds
    basis: str


@dataclass(frozen=True, slots=True)
class Speeds:
    """The two figures of an estimate, without their words."""

    single: float
    together: float


def decode_estimate(box: Box, model: ModelFacts, spec: EngineSpec, memory: MemoryPlan) -> Estimate | None:
    """The speed of decoding under this plan; None where cards or memory are not known, or a card stands twice."""
    speeds = decode_speeds(box, model, spec, memory, link_table(box))
    if speeds is None:
        return None
    return Estimate(round(speeds.single, 2), round(speeds.together, 2), _basis(box, model, spec))


def decode_speeds(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    memory: MemoryPlan,
    table: Mapping[tuple[int, int], str],
    *,
    load: tuple[float, int] | None = None,
) -> Speeds | None:
    """Tokens a second of one request, and of all that fit; `table` is the box's `link_table`.

    `load` are other requests than the plan's worst: how many at once on each copy, and the tokens behind each.

    Stages work one after the other on one request, and at the same time on different ones; within a stage the slowest
    rank counts.  Of a mixture of experts only the chosen experts are read, more of them the more requests there are.
    """
    placement = spec.placement
    stages, ranks, copies = placement.pipeline_parallel_size, placement.tensor_parallel_size, placement.replicas
    layers = partition_of(spec, model.layers)
    if not memory.per_gpu or len(layers) != stages or copies < 1 or stages < 1 or ranks < 1:
        return None
    if len(set(placement.gpus)) < len(placement.gpus):
        return None  # a card has no link with itself
    settings = settings_for(model, spec, box.gpu(placement.gpus[0]))
    most, longest = float(settings.max_num_seqs), memory.max_model_len
    batch, length = (
        (min(load[0], most), min(load[1], longest)) if load else (min(most, memory.max_concurrency), longest)
    )
    batch = max(batch, 1.0)
    share = max(batch / stages, 1.0)  # what one stage works on while the others have the rest
    reads = read_share(model, 1.0), read_share(model, share)
    single, together = 0.0, 0.0
    parts = {part.gpu: part for part in memory.per_gpu}
    for copy in range(copies):
        groups = placement.stages[copy * stages : (copy + 1) * stages]
        alone, slowest, full = _STEP, 0.0, _STEP
        for stage, cards in enumerate(groups):
            gpus = [gpu for card in cards if (gpu := box.gpu(card)) is not None]
            if len(gpus) != len(cards) or any(card not in parts for card in cards):
                return None
            after = groups[stage + 1] if stage + 1 < stages else ()
            link = weakest_of(table, cards)
            alone_length = length if load else min(CONTEXT, length)
            one = _stage_seconds(
                model,
                settings.dtype_bytes,
                gpus,
                parts,
                link,
                layers[stage],
                1.0,
                alone_length,
                memory.tokens_of(copy),
                reads[0],
                reads[0],
            )
            one += _hand_over(model, table, gpus, after, 1.0)
            many = _stage_seconds(
                model,
                settings.dtype_bytes,
                gpus,
                parts,
                link,
                layers[stage],
                share,
                length,
                memory.tokens_of(copy),
                *reads,
            ) + _hand_over(model, table, gpus, after, share)
            alone, full, slowest = alone + one, full + many, max(slowest, many + _STEP)
        speed = 1 / alone
        # With fewer requests than stages some stages have nothing to do.
        rate = min(share / slowest, batch / full) if batch < stages else share / slowest
        single = speed if copy == 0 else min(single, speed)
        together += rate
    return Speeds(single, together)


def _stage_seconds(
    model: ModelFacts,
    width: int,
    gpus: list[Gpu],
    parts: Mapping[int, GpuMemory],
    link: str,
    layers: int,
    requests: float,
    length: int,
    tokens: int,
    active: float,
    read: float,
) -> float:
    """One step of a stage for that many requests of `length` tokens each, with a KV cache of `tokens` in all.

    Of the weights one request computes with a part `active`, and all of them together read a part `read`.
    """
    slowest = 0.0
    for gpu in gpus:
        part, speed = parts[gpu.index], card_speed(gpu)
        cached = part.kv_cache / tokens if tokens else 0.0
        # Packed or not, a weight costs two operations a token; bytes stand for them at the engine's own width.
        operations = 2 * part.weights / width * active * requests
        reading = (part.weights * read + cached * length * requests) / speed.bandwidth
        slowest = max(slowest, reading, operations / speed.compute)
    size = requests * model.hidden_size * width
    reduced = 2 * layers * all_reduce_seconds(len(gpus), link, size, min(slot(gpu) for gpu in gpus))
    return slowest + reduced + layers * _LAYER


def _hand_over(
    model: ModelFacts, table: Mapping[tuple[int, int], str], gpus: list[Gpu], after: tuple[int, ...], requests: float
) -> float:
    """Passing the hidden states on to the next stage, rank by rank at the same time; the slowest pair counts."""
    size = requests * model.hidden_size * 2
    slowest = 0.0
    for gpu, other in zip(gpus, after, strict=False):
        hop, bandwidth = link_speed(table.get((gpu.index, other), "SYS"), slot(gpu))
        slowest = max(slowest, hop + size / bandwidth)
    return slowest


def _routed_share(model: ModelFacts) -> float:
    """The part of all weights that lies in routed experts."""
    experts, layout = model.experts, model.weights
    if experts is None or layout is None or model.parameters is None or model.parameters <= 0:
        return 0.0
    matrices = 3 if model.gated_mlp else 2
    sparse = sum(1 for layer in layout.layers if layer == layout.layers[-1])
    routed = sparse * experts.count * matrices * model.hidden_size * experts.intermediate_size
    return min(routed / model.parameters, 0.99)


def read_share(model: ModelFacts, requests: float) -> float:
    """The part of all weights that one step reads: of the experts those that at least one request chooses."""
    experts = model.experts
    if experts is None or experts.count < 1:
        return 1.0
    routed = _routed_share(model)
    idle = math.pow(1 - min(experts.per_token / experts.count, 1.0), max(requests, 1.0))
    return max(1 - routed * idle, 0.01)


def _basis(box: Box, model: ModelFacts, spec: EngineSpec) -> str:
    placement = spec.placement
    parts = [
        f"one request with up to {CONTEXT:,} tokens behind it reads the weights"
        + (" of the chosen experts" if model.experts is not None else "")
        + " and its KV cache once a token, at 80 % of the memory bandwidth"
    ]
    if placement.tensor_parallel_size > 1:
        parts.append("two all-reduces a layer over the weakest link of the group")
    if placement.pipeline_parallel_size > 1:
        parts.append("stages work one after the other and hand over through the links")
    assumed = assumed_cards(box, placement.gpus)
    if assumed:
        told = sorted({f"{card_speed(gpu).bandwidth / 0.8e9:.0f} GB/s for {gpu.compute_capability}" for gpu in assumed})
        cards = ", ".join(str(gpu.index) for gpu in assumed)
        parts.append(f"the bandwidth of GPU {cards} is not told and assumed by compute capability ({', '.join(told)})")
    parts.append("compare placements by it, and expect less")
    return "; ".join(parts)
