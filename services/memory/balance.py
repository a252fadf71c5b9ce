"""A layer partition for cards of unequal room."""

from collections.abc import Mapping
from dataclasses import replace

from gpudeck.services.box.types import Box
from gpudeck.services.memory.partition import default_partition
from gpudeck.services.memory.plan import MemoryDetail, memory_detail
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.types import EngineSpec


def balanced_partition(
    box: Box, model: ModelFacts, spec: EngineSpec, used: Mapping[int, int]
) -> tuple[int, ...] | None:
    """The layers of each stage that give the most KV cache; None where vLLM's own split gives as much.

    Layers move one by one from the stage with the least room to the one with the most, as long as that helps: moving a
    layer changes only these two, and a stage's room falls with every layer, so no farther move can help where this one
    does not.
    """
    stages = spec.placement.pipeline_parallel_size
    if stages < 2 or stages > model.layers:
        return None
    default = list(default_partition(model.layers, stages))
    best = list(default)
    score = least = _room(box, model, spec, used, best)
    for _ in range(model.layers):
        moved = _moved(box, model, spec, used, best)
        if moved is None:
            break
        reached = _room(box, model, spec, used, moved)
        if reached <= score:
            break
        best, score = moved, reached
    return tuple(best) if score > least else None


def _detail(
    box: Box, model: ModelFacts, spec: EngineSpec, used: Mapping[int, int], partition: list[int]
) -> MemoryDetail:
    return memory_detail(box, model, replace(spec, layer_partition=tuple(partition)), used)


def _room(box: Box, model: ModelFacts, spec: EngineSpec, used: Mapping[int, int], partition: list[int]) -> int:
    """Blocks of the tightest rank, or where there are none how many bytes it lacks (negative)."""
    detail = _detail(box, model, spec, used, partition)
    return min((rank.for_cache // max(rank.block_bytes, 1) for rank in detail.ranks), default=0)


def _moved(
    box: Box, model: ModelFacts, spec: EngineSpec, used: Mapping[int, int], partition: list[int]
) -> list[int] | None:
    ranks = _detail(box, model, spec, used, partition).ranks
    rooms: dict[int, int] = {}
    for rank in ranks:
        room = rank.for_cache // max(rank.block_bytes, 1)
        rooms[rank.stage] = min(room, rooms.get(rank.stage, room))
    giver = min(rooms, key=lambda stage: rooms[stage], default=0)
    taker = max(rooms, key=lambda stage: rooms[stage], default=0)
    if giver == taker or partition[giver] < 2:
        return None
    moved = list(partition)
    moved[giver] -= 1
    moved[taker] += 1
    return moved
