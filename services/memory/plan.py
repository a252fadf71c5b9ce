"""The memory of a plan: what each card would hold, and how many tokens fit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gpudeck.services.box.types import Box, Gpu
from gpudeck.services.memory.kv_cache import (
    CacheGroup,
    blocks_needed,
    cache_groups,
    largest_share,
    layer_token_bytes,
    longest_request,
)
from gpudeck.services.memory.overhead import Overhead, context_bytes, driver_reserve, rank_overhead
from gpudeck.services.memory.partition import partition_of
from gpudeck.services.memory.settings import AUTO_LENGTH, Settings, settings_for
from gpudeck.services.memory.weights import StageShare, rank_weights
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import GpuMemory, MemoryPlan
from gpudeck.services.plan.types import EngineSpec


@dataclass(frozen=True, slots=True)
class RankMemory:
    """One rank's memory before the ranks agree on a number of blocks; bytes."""

    gpu: Gpu
    copy: int  # of several copies, from 0
    stage: int
    weights: int
    overhead: Overhead
    other: int  # taken by processes that are there already
    reserve: int  # the driver's
    context: int  # CUDA's
    budget: int  # utilization × CUDA's total
    block_bytes: int  # what one block takes on this rank

    @property
    def cuda_total(self) -> int:
        return self.gpu.memory_bytes - self.reserve

    @property
    def free_at_start(self) -> int:
        """What vLLM sees free when it compares with the budget; below it, it refuses to start."""
        return self.cuda_total - self.other - self.context - self.overhead.nccl

    @property
    def for_cache(self) -> int:
        """What the budget leaves for the KV cache; negative when weights and peak exceed it."""
        return self.budget - self.weights - self.overhead.inside

    def least(self, blocks: int) -> int:
        """The budget in which weights, peak and so many blocks find room."""
        return self.weights + self.overhead.inside + self.block_bytes * max(blocks, 1)

    @property
    def spare_beside_budget(self) -> int:
        """What is left on the card when the budget is used up; negative when the rest does not fit beside it."""
        return self.free_at_start - self.budget - self.overhead.graphs_outside

    def blocks(self, settings: Settings) -> int:
        """Blocks that fit on this rank; only for ranks that keep a cache (`block_bytes` above 0)."""
        if settings.blocks is not None:
            return settings.blocks
        room = self.for_cache if settings.kv_cache_memory_bytes is None else settings.kv_cache_memory_bytes
        return max(room // self.block_bytes, 0)


@dataclass(frozen=True, slots=True)
class MemoryDetail:
    """A memory plan with what it was made from, for the rules that explain it."""

    plan: MemoryPlan
    ranks: tuple[RankMemory, ...]
    settings: Settings
    groups: tuple[CacheGroup, ...]
    blocks: int  # the least over the ranks, which all of a copy take; of several copies the least
    copy_blocks: tuple[int, ...]  # of each copy: they share no cache (only elastic expert parallelism evens it out)
    needed: int  # blocks that one request of max_model_len takes
    token_bytes: int  # in one layer on one rank
    longest: int  # the largest length that fits, up to the model's own
    needed_later: int  # `needed` of a later version, where the engine's is not known
    longest_later: int  # and `longest`: what fits whichever version it is


def memory_plan(box: Box, model: ModelFacts, spec: EngineSpec, used: Mapping[int, int]) -> MemoryPlan:
    """The memory of this plan; see `memory_detail`."""
    return memory_detail(box, model, spec, used).plan


def memory_detail(
    box: Box, model: ModelFacts, spec: EngineSpec, used: Mapping[int, int], vllm_version: str | None = None
) -> MemoryDetail:
    """What each rank's card holds under this plan.

    Cards that the box does not have are left out; a layer partition that does not add up is taken as far as it goes,
    for the rules to refuse.  `used` is the bytes that are taken on a card already; vLLM's
    defaults are those of `vllm_version`, where it is not known of the newest that was measured.
    """
    placement = spec.placement
    settings = settings_for(model, spec, box.gpu(placement.gpus[0]) if placement.gpus else None, vllm_version)
    groups = cache_groups(model)
    token_bytes = layer_token_bytes(model, settings, placement.tensor_parallel_size)
    ranks = _ranks(box, model, spec, settings, groups, token_bytes, used)
    copy_blocks = _copy_blocks(ranks, settings, max(placement.replicas, 1))
    blocks = min(copy_blocks)
    in_flight = settings.max_num_batched_tokens * settings.concurrent_batches
    later = settings.max_num_batched_tokens * settings.later_batches
    limit = model.max_position_embeddings or max(settings.max_model_len, 1)
    longest = longest_request(groups, blocks, in_flight, settings.block_size, limit)
    length = max(longest if settings.max_model_len == AUTO_LENGTH else settings.max_model_len, 1)
    needed = blocks_needed(groups, length, in_flight, settings.block_size)
    windows = later != in_flight and any(group.window is not None for group in groups)
    concurrency = blocks / needed if needed else 0.0
    plan = MemoryPlan(
        per_gpu=tuple(_on_card(rank, copy_blocks[rank.copy]) for rank in ranks),
        kv_cache_tokens=int(concurrency * length),
        max_concurrency=concurrency,
        max_model_len=length,
        copies=tuple(int(each / needed * length) if needed else 0 for each in copy_blocks)
        if len(copy_blocks) > 1
        else (),
    )
    return MemoryDetail(
        plan,
        ranks,
        settings,
        groups,
        blocks,
        copy_blocks,
        needed,
        token_bytes,
        longest,
        needed_later=blocks_needed(groups, length, later, settings.block_size) if windows else needed,
        longest_later=longest_request(groups, blocks, later, settings.block_size, limit) if windows else longest,
    )


def _copy_blocks(ranks: tuple[RankMemory, ...], settings: Settings, copies: int) -> tuple[int, ...]:
    """The blocks of each copy, which all its ranks take."""
    least: dict[int, int] = {}
    for rank in ranks:
        if rank.block_bytes > 0:
            blocks = rank.blocks(settings)
            least[rank.copy] = min(least.get(rank.copy, blocks), blocks)
    # Stages beyond the last whole copy are no copy of their own; the rules refuse them.
    count = max(copies, max((rank.copy for rank in ranks), default=0) + 1)
    return tuple(least.get(copy, 0) for copy in range(count))


def stage_shares(spec: EngineSpec, layers: int) -> tuple[StageShare, ...]:
    """What each stage of one copy holds."""
    partition = partition_of(spec, layers)
    stages = max(spec.placement.pipeline_parallel_size, 1)
    shares = []
    start = 0
    for stage in range(stages):
        end = start + partition[stage] if stage < len(partition) else layers
        end = max(min(end, layers), start)
        ranks = max(spec.placement.tensor_parallel_size, 1)
        shares.append(StageShare(start, end, ranks, is_first=stage == 0, is_last=stage == stages - 1))
        start = end
    return tuple(shares)


def _ranks(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    settings: Settings,
    groups: tuple[CacheGroup, ...],
    token_bytes: int,
    used: Mapping[int, int],
) -> tuple[RankMemory, ...]:
    shares = stage_shares(spec, model.layers)
    world_size = len(shares) * shares[0].tensor_parallel
    weights = [rank_weights(model, settings, spec.options.quantization, share) for share in shares]
    overheads = [rank_overhead(model, settings, share, world_size) for share in shares]
    block = token_bytes * settings.block_size
    blocks = [block * largest_share(groups, share.first_layer, share.end_layer) for share in shares]
    ranks: list[RankMemory] = []
    for place, cards in enumerate(spec.placement.stages):
        stage = place % len(shares)
        for gpu in (box.gpu(card) for card in cards):
            if gpu is None:
                continue
            reserve = driver_reserve(gpu)
            budget = math.ceil((gpu.memory_bytes - reserve) * settings.utilization)
            other = max(used.get(gpu.index, 0), 0)
            ranks.append(
                RankMemory(
                    gpu=gpu,
                    copy=place // len(shares),
                    stage=stage,
                    weights=weights[stage],
                    overhead=overheads[stage],
                    other=other,
                    reserve=reserve,
                    context=context_bytes(gpu),
                    budget=budget,
                    block_bytes=blocks[stage],
                )
            )
    return tuple(ranks)


def _on_card(rank: RankMemory, blocks: int) -> GpuMemory:
    cache = blocks * rank.block_bytes
    overhead = rank.reserve + rank.context + rank.overhead.inside + rank.overhead.outside
    return GpuMemory(
        gpu=rank.gpu.index,
        weights=rank.weights,
        kv_cache=cache,
        overhead=overhead,
        other=rank.other,
        free=rank.gpu.memory_bytes - rank.weights - cache - overhead - rank.other,
    )
