"""A layer partition for stages of unequal room or speed."""

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from gpudeck.services.box.types import Box
from gpudeck.services.memory.kv_cache import CacheGroup, blocks_needed, cache_groups, largest_share, layer_token_bytes
from gpudeck.services.memory.overhead import driver_reserve, rank_overhead
from gpudeck.services.memory.partition import default_partition
from gpudeck.services.memory.settings import AUTO_LENGTH, settings_for
from gpudeck.services.memory.weights import StageShare, rank_weights
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.types import EngineSpec

# A partition is one more thing to keep in mind: below this gain vLLM's own split serves.
_WORTHWHILE = 1.02


@dataclass(slots=True)
class _Costs:
    """What was computed for one model and one set of options, whatever the cards."""

    model: ModelFacts
    options: object
    groups: tuple[CacheGroup, ...]
    alike: bool  # whether all layers weigh the same
    # (TP, is first, is last, what vLLM fills in) → (first layer, end) → bytes before the cache, bytes of a block
    taken: dict[tuple[int, ...], dict[tuple[int, int], tuple[int, int]]] = field(default_factory=dict)
    layer_bytes: dict[tuple[int, int], list[int]] = field(default_factory=dict)  # what each layer adds to a rank
    shares: list[int] | None = None  # `_Rooms.least_shares`
    # What a stage has left at best for each number of layers, negated: by what it takes and its budget.
    bests: dict[tuple[int, ...], list[int]] = field(default_factory=dict)


# A drag and a search ask for one model again and again; a box has a few plans at once.
_KEPT: deque[_Costs] = deque(maxlen=4)


def _costs_of(model: ModelFacts, spec: EngineSpec, vllm_version: str | None) -> _Costs:
    """What was computed before for this model and these options."""
    options = spec.options, spec.environment, vllm_version
    for kept in tuple(_KEPT):
        if kept.model is model and kept.options == options:
            return kept
    layers = () if model.weights is None else model.weights.layers
    alike = len(layers) == model.layers and all(layer == layers[0] for layer in layers)
    made = _Costs(model, options, cache_groups(model), alike)
    _KEPT.append(made)
    return made


class Aim(str, Enum):
    """What a partition is balanced for."""

    CACHE = "cache"  # the most KV cache
    SPEED = "speed"  # the least time a token, as long as one request of max-model-len tokens fits


def balanced_partition(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    *,
    aim: Aim = Aim.CACHE,
    bandwidths: Sequence[float] = (),
    vllm_version: str | None = None,
) -> tuple[int, ...] | None:
    """The layers of each stage that serve the aim best; None where vLLM's own split does as well.

    None as well where no partition leaves any room for a KV cache.

    `bandwidths` are the stages' memory bandwidths, which decide for speed; where no partition holds a request of
    max-model-len tokens, the one with the most KV cache is taken instead.  What others hold on a card does not matter:
    vLLM's budget is a share of the whole card, and the rules refuse a card that is taken.
    """
    stages = spec.placement.pipeline_parallel_size
    if stages < 2 or stages > model.layers or model.weights is None:
        return None
    rooms = _Rooms(box, model, spec, vllm_version)
    default = default_partition(model.layers, stages)
    before = rooms.least(default)
    if aim is Aim.SPEED and len(bandwidths) == stages:
        # Stages of one speed take the same time in all, however the layers are shared out.
        even = len(set(bandwidths)) == 1
        if even and before >= rooms.needed:
            return None
        fastest = None if even else _fastest(rooms, bandwidths)
        if fastest is not None:
            faster = _WORTHWHILE * rooms.seconds(fastest, bandwidths) <= rooms.seconds(default, bandwidths)
            return fastest if faster or before < rooms.needed else None
    roomiest = _roomiest(rooms, before)
    if roomiest is None:
        return None
    gained = rooms.least(roomiest)
    return roomiest if gained > before and (before <= 0 or gained >= _WORTHWHILE * before) else None


class _Rooms:
    """What each stage has left for the KV cache when it holds the layers from `first` up to `end`.

    More layers never leave more room, on either side: that is what makes the searches below exact.
    """

    def __init__(self, box: Box, model: ModelFacts, spec: EngineSpec, vllm_version: str | None) -> None:
        placement = spec.placement
        self.layers, self.stages = model.layers, placement.pipeline_parallel_size
        self._model, self._quantization = model, spec.options.quantization
        self._ranks = max(placement.tensor_parallel_size, 1)
        self._settings = settings_for(model, spec, box.gpu(placement.gpus[0]), vllm_version)
        self._kept = costs = _costs_of(model, spec, vllm_version)
        self._groups, self.alike = costs.groups, costs.alike
        self._block = layer_token_bytes(model, self._settings, self._ranks) * self._settings.block_size
        budgets = [math.inf] * self.stages
        for place, cards in enumerate(placement.stages):
            for gpu in (box.gpu(card) for card in cards):
                if gpu is not None:
                    budget = math.ceil((gpu.memory_bytes - driver_reserve(gpu)) * self._settings.utilization)
                    budgets[place % self.stages] = min(budgets[place % self.stages], budget)
        self._budgets = [0 if math.isinf(budget) else int(budget) for budget in budgets]
        length = self._settings.max_model_len
        in_flight = self._settings.max_num_batched_tokens * self.stages
        self.needed = (
            1
            if length == AUTO_LENGTH
            else blocks_needed(self._groups, max(length, 1), in_flight, self._settings.block_size)
        )
        # What a stage takes depends on the cards only through what vLLM fills in from the first of them.
        batch = (
            self._settings.max_num_batched_tokens,
            self._settings.max_num_seqs,
            length,
            self._settings.expert_copies,
        )
        last = self.stages - 1
        ends = [(self._ranks, stage == 0, stage == last, *batch) for stage in range(self.stages)]
        self._bests = [(*end, self._block, budget) for end, budget in zip(ends, self._budgets, strict=True)]
        self._costs = [costs.taken.setdefault(end, {}) for end in ends]

    def _share(self, stage: int, first: int, end: int) -> StageShare:
        return StageShare(first, end, self._ranks, is_first=stage == 0, is_last=stage == self.stages - 1)

    def of(self, stage: int, first: int, end: int) -> int:
        """Blocks that fit, or where there are none how many bytes are lacking (negative)."""
        costs = self._costs[stage]
        cost = costs.get((first, end))
        if cost is None:
            block = self._block * largest_share(self._groups, first, end)
            cost = costs[first, end] = self._taken(stage, first, end), max(block, 1)
        left = self._budgets[stage] - cost[0]
        return left if left < 0 else left // cost[1]

    def _taken(self, stage: int, first: int, end: int) -> int:
        """Weights and what else comes before the cache."""
        # Layers of one weight: kept by their number, where no range of layers can stand.
        key = -1, end - first
        costs = self._costs[stage]
        if self.alike and key in costs:
            return costs[key][0]
        share = self._share(stage, first, end)
        taken = rank_weights(self._model, self._settings, self._quantization, share)
        taken += rank_overhead(self._model, self._settings, share, self.stages * self._ranks).inside
        if self.alike:
            costs[key] = taken, 1
        return taken

    def least_shares(self) -> list[int]:
        """For each number of neighbouring layers the least that a block takes of them, wherever they stand."""
        if self._kept.shares is None:
            sums = []
            for group in self._groups:
                held, counts = frozenset(group.layers), [0]
                for layer in range(self.layers):
                    counts.append(counts[-1] + (layer in held))
                sums.append(counts)
            self._kept.shares = [
                min(
                    max((counts[first + count] - counts[first] for counts in sums), default=0)
                    for first in range(self.layers - count + 1)
                )
                for count in range(self.layers + 1)
            ]
        return self._kept.shares

    def bests(self, stage: int) -> list[int]:
        """The stage's room with 1, 2, 3 … layers of equal weight wherever they stand at best, each negated."""
        found = self._kept.bests.get(self._bests[stage])
        if found is None:
            shares, budget = self.least_shares(), self._budgets[stage]
            found = []
            for count in range(1, self.layers + 1):
                left = budget - self._taken(stage, 0, count)
                found.append(-left if left < 0 else -(left // max(self._block * shares[count], 1)))
            self._kept.bests[self._bests[stage]] = found
        return found

    def hold_at_most(self, least: int) -> list[int]:
        """How many layers of equal weight each stage can hold with a room of `least`, wherever they stand at best."""
        most = self.layers - self.stages + 1
        return [min(bisect_right(self.bests(stage), -least), most) for stage in range(self.stages)]

    def least(self, partition: Sequence[int]) -> int:
        """The room of the tightest stage, which all take."""
        start, rooms = 0, []
        for stage, layers in enumerate(partition):
            rooms.append(self.of(stage, start, start + layers))
            start += layers
        return min(rooms)

    def farthest(self, stage: int, first: int, least: int) -> int:
        """The largest end up to which the stage keeps a room of `least`, with a layer for each later stage; 0: none."""
        low, high = first, self.layers - (self.stages - 1 - stage)
        while low < high:
            middle = (low + high + 1) // 2
            if self.of(stage, first, middle) >= least:
                low = middle
            else:
                high = middle - 1
        return low if low > first else 0

    def layer_bytes(self) -> list[int]:
        """What each layer adds to the weights of a rank."""
        key = self._ranks, self._settings.expert_copies
        found = self._kept.layer_bytes.get(key)
        if found is None:
            inner = [StageShare(at, at + 1, self._ranks, is_first=False, is_last=False) for at in range(self.layers)]
            bare = StageShare(0, 0, self._ranks, is_first=False, is_last=False)
            without = rank_weights(self._model, self._settings, self._quantization, bare)
            if self.alike:
                inner = inner[:1]
            found = [rank_weights(self._model, self._settings, self._quantization, share) - without for share in inner]
            found = self._kept.layer_bytes[key] = found * self.layers if self.alike else found
        return found

    def seconds(self, partition: Sequence[int], bandwidths: Sequence[float]) -> float:
        """What reading the layers' weights once takes, the stages one after the other."""
        weights, start, total = self.layer_bytes(), 0, 0.0
        for layers, bandwidth in zip(partition, bandwidths, strict=True):
            total += sum(weights[start : start + layers]) / bandwidth
            start += layers
        return total


def _filled(rooms: _Rooms, least: int) -> tuple[int, ...] | None:
    """A partition that leaves each stage a room of `least`: each stage takes as many layers as it can."""
    partition, start = [], 0
    for stage in range(rooms.stages):
        end = rooms.farthest(stage, start, least)
        if not end:
            return None
        partition.append(end - start)
        start = end
    return tuple(partition) if start == rooms.layers else None


def _roomiest(rooms: _Rooms, reached: int) -> tuple[int, ...] | None:
    """The partition whose tightest stage has the most room; None where nothing exceeds `reached` or has room."""
    low = max(reached, 1)
    best = _filled(rooms, low)
    if best is None:
        return None
    high = max(_bound(rooms, low), low)
    most = _filled(rooms, high)
    if most is not None:
        return most
    high -= 1
    while low < high:
        middle = (low + high + 1) // 2
        found = _filled(rooms, middle)
        if found is None:
            high = middle - 1
        else:
            best, low = found, middle
    return best


def _bound(rooms: _Rooms, low: int) -> int:
    """A room that no partition's tightest stage exceeds."""
    if not rooms.alike:
        return min(rooms.of(stage, stage, stage + 1) for stage in range(rooms.stages))
    high = min(-rooms.bests(stage)[0] for stage in range(rooms.stages))
    while low < high:
        middle = (low + high + 1) // 2
        if sum(rooms.hold_at_most(middle)) >= rooms.layers:
            low = middle
        else:
            high = middle - 1
    return low


def _fastest(rooms: _Rooms, bandwidths: Sequence[float]) -> tuple[int, ...] | None:
    """The partition that reads its weights in the least time and holds one request; None where none holds it.

    By dynamic programming over (stage, layers given out so far): exact for layers of any sizes.
    """
    if rooms.alike:
        # No partition is faster than one that may choose which layers a stage has.
        found = _fastest_of_equal(rooms, bandwidths)
        if found is None or rooms.least(found) >= rooms.needed:
            return found
    sums = [0]
    for size in rooms.layer_bytes():
        sums.append(sums[-1] + size)
    reached: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for stage, bandwidth in enumerate(bandwidths):
        later: dict[int, tuple[float, tuple[int, ...]]] = {}
        for first, (seconds, partition) in reached.items():
            for end in range(first + 1, rooms.farthest(stage, first, rooms.needed) + 1):
                total = seconds + (sums[end] - sums[first]) / bandwidth
                if end not in later or total < later[end][0]:
                    later[end] = (total, (*partition, end - first))
        reached = later
    return reached[rooms.layers][1] if rooms.layers in reached else None


def _fastest_of_equal(rooms: _Rooms, bandwidths: Sequence[float]) -> tuple[int, ...] | None:
    """The same where all layers are equal: the fastest stages take what they hold at best, the others one each."""
    holds = rooms.hold_at_most(rooms.needed)
    partition, left = [1] * rooms.stages, rooms.layers - rooms.stages
    for stage in sorted(range(rooms.stages), key=lambda stage: -bandwidths[stage]):
        more = min(holds[stage] - 1, left)
        partition[stage] += max(more, 0)
        left -= max(more, 0)
    return tuple(partition) if left == 0 and min(holds) > 0 else None
