"""Every placement that is weighed, with its memory, its speed and its place in the objective's order."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpudeck.services.box.types import Box
from gpudeck.services.memory.balance import Aim, balanced_partition
from gpudeck.services.memory.plan import MemoryDetail, memory_detail
from gpudeck.services.memory.settings import AUTO_LENGTH
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.estimate import decode_speeds
from gpudeck.services.plan.findings import MemoryPlan
from gpudeck.services.plan.proposals.cards import Cards
from gpudeck.services.plan.proposals.grouping import Grouper, Groups
from gpudeck.services.plan.proposals.objective import Objective, Order, merits, order
from gpudeck.services.plan.speeds import card_speed
from gpudeck.services.plan.types import EngineSpec, Placement
from gpudeck.services.rules.parallel import tensor_sizes

# Groupings of one shape and one choice of cards that are weighed in full: the best linked.
_LINKED = 3
# Placements of one shape.  Up to six cards of up to four kinds have fewer; on larger boxes the best linked are enough,
# by the number of kinds.
_FEW_CARDS, _OF_ONE_SHAPE = 6, 48
_OF_A_SHAPE, _OF_MANY_KINDS = {1: 3, 2: 4}, 2
_MOST_STAGES = 8  # more are weighed only where they are asked for
_LENGTH_STEP = 256  # a context that is chosen here is a multiple of it
_LEAST_LENGTH = 2048  # below it no context is worth a proposal
Composition = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What is asked for; None is free."""

    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    replicas: int | None = None

    def __str__(self) -> str:
        copies = f" × {self.replicas} copies" if self.replicas and self.replicas > 1 else ""
        return f"TP {self.tensor_parallel or 'any'} × PP {self.pipeline_parallel or 'any'}{copies}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A placement before it is judged."""

    spec: EngineSpec
    family: tuple[object, ...]  # shape and kinds of cards: of one family the best is enough
    order: Order
    fits: bool  # as far as the KV cache alone tells


class Weigher:
    """Weighs placements of one model on one choice of cards; the memory of a shape is computed once for equal cards."""

    def __init__(
        self, cards: Cards, model: ModelFacts, spec: EngineSpec, objective: Objective, vllm_version: str | None
    ) -> None:
        self._cards, self._box, self._model, self._spec = cards, cards.box, model, spec
        self._objective, self._version = objective, vllm_version
        self._known: dict[tuple[Composition, int], tuple[EngineSpec, MemoryDetail]] = {}

    def weigh(self, placement: Placement) -> Candidate:
        composition = tuple(tuple(self._cards.kinds[card] for card in stage) for stage in placement.stages)
        spec, detail = self._memory(placement, composition)
        spec = replace(spec, placement=placement)
        memory = on_cards(detail.plan, placement) if self._model.weights is not None else None
        speeds = decode_speeds(self._box, self._model, spec, memory, self._cards.table) if memory is not None else None
        asked = self._spec.options.max_model_len
        length = self._model.max_position_embeddings if asked in (None, AUTO_LENGTH) else asked
        found = merits(self._cards, placement, memory, speeds, max_num_seqs=detail.settings.max_num_seqs, length=length)
        return Candidate(
            spec=spec,
            family=(
                placement.tensor_parallel_size,
                placement.pipeline_parallel_size,
                placement.replicas,
                tuple(sorted(kind for stage in composition for kind in stage)),
            ),
            order=order(self._objective, placement, found),
            fits=detail.blocks >= detail.needed,
        )

    def _memory(self, placement: Placement, composition: Composition) -> tuple[EngineSpec, MemoryDetail]:
        key = composition, placement.replicas
        if key not in self._known:
            spec = replace(self._spec, placement=placement)
            partition = spec.layer_partition
            if partition is None or len(partition) != placement.pipeline_parallel_size:
                spec = replace(spec, layer_partition=None)
                spec = replace(spec, layer_partition=self._partition(spec))
            detail = memory_detail(self._box, self._model, spec, {}, self._version)
            self._known[key] = self._shortened(spec, detail)
        return self._known[key]

    def _partition(self, spec: EngineSpec) -> tuple[int, ...] | None:
        if spec.placement.pipeline_parallel_size < 2:
            return None
        return _partition(self._box, self._model, spec, self._objective, self._version)

    def _shortened(self, spec: EngineSpec, detail: MemoryDetail) -> tuple[EngineSpec, MemoryDetail]:
        """With the longest context that fits, where none is asked for and the model's own does not fit."""
        if spec.options.max_model_len is not None or detail.blocks >= detail.needed_later:
            return spec, detail
        longest = detail.longest_later // _LENGTH_STEP * _LENGTH_STEP
        if longest < _LEAST_LENGTH or detail.settings.max_model_len == AUTO_LENGTH:
            return spec, detail
        shorter = replace(spec, options=replace(spec.options, max_model_len=longest))
        return shorter, memory_detail(self._box, self._model, shorter, {}, self._version)


def on_cards(plan: MemoryPlan, placement: Placement) -> MemoryPlan:
    """The memory plan of equal cards, told of these."""
    parts = zip(plan.per_gpu, placement.gpus, strict=True)
    return replace(plan, per_gpu=tuple(replace(part, gpu=card) for part, card in parts))


def _partition(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    objective: Objective,
    vllm_version: str | None,
) -> tuple[int, ...] | None:
    """The layers of each stage for the most speed where one stream is to be fast, else for the most KV cache."""
    aim = Aim.SPEED if objective is Objective.LATENCY else Aim.CACHE
    paces = []
    stages = spec.placement.pipeline_parallel_size
    for stage in range(stages):
        gpus = [box.gpu(card) for cards in spec.placement.stages[stage::stages] for card in cards]
        paces.append(min((card_speed(gpu).bandwidth for gpu in gpus if gpu is not None), default=1.0))
    return balanced_partition(box, model, spec, aim=aim, bandwidths=paces, vllm_version=vllm_version)


def candidates(
    cards: Cards,
    model: ModelFacts,
    spec: EngineSpec,
    shape: Shape,
    objective: Objective,
    vllm_version: str | None,
    *,
    mixed: bool = False,
) -> list[Candidate]:
    """Every placement that is weighed, in the objective's order."""
    weigher = Weigher(cards, model, spec, objective, vllm_version)
    found: dict[Placement, Candidate] = {}
    for placement in placements(cards, model, shape, objective, mixed=mixed):
        if placement not in found:
            found[placement] = weigher.weigh(placement)
    return sorted(found.values(), key=lambda candidate: candidate.order)


def placements(
    cards: Cards, model: ModelFacts, shape: Shape, objective: Objective, *, mixed: bool = False
) -> Iterator[Placement]:
    """The placements of that shape that differ in more than which of two equal cards they take."""
    grouper = Grouper(cards, mixed=mixed)
    few = len(cards.gpus) <= _FEW_CARDS
    most = _OF_ONE_SHAPE if few else _OF_A_SHAPE.get(len(set(cards.kinds.values())), _OF_MANY_KINDS)
    for size, stages, copies in _shapes(cards, model, shape, objective):
        seen: dict[Composition, int] = {}
        given = 0
        for groups in grouper.groupings(size, stages * copies):
            kinds = tuple(sorted(tuple(sorted(cards.kinds[card] for card in group)) for group in groups))
            seen[kinds] = seen.get(kinds, 0) + 1
            if seen[kinds] > _LINKED:
                continue
            for arranged in _arranged(cards, groups, stages, copies):
                yield Placement(arranged, copies)
                given += 1
            if given >= most:
                break


def _shapes(cards: Cards, model: ModelFacts, shape: Shape, objective: Objective) -> Iterator[tuple[int, int, int]]:
    """Size, stages and copies.  For one request copies do nothing: then there is one, or as many as the box has."""
    most = len(cards.gpus)
    kv_heads = None if model.mla is not None else model.kv_heads
    sizes = (
        tensor_sizes(model.attention_heads, kv_heads, model.vocab_size, most)
        if shape.tensor_parallel is None
        else [shape.tensor_parallel]
    )
    for size in sizes:
        for stages in (
            range(1, min(most // size, _MOST_STAGES) + 1)
            if shape.pipeline_parallel is None
            else [shape.pipeline_parallel]
        ):
            if (
                stages > 1
                and shape.pipeline_parallel is None
                and (stages > model.layers or not model.supports_pipeline)
            ):
                continue
            room = most // (size * stages)
            few = {1, room} if room else set()
            free = range(1, room + 1) if objective is Objective.CONCURRENCY else sorted(few)
            for count in free if shape.replicas is None else [shape.replicas]:
                if size * stages * count <= most:
                    yield size, stages, count


def _arranged(cards: Cards, groups: Groups, stages: int, copies: int) -> Iterator[Groups]:
    """The groups as stages, copy by copy: cards of the lowest capability first, since vLLM asks the first card only.

    Only the first and the last stage hold more than layers, so that the order of those between does not matter.
    """

    def kinds(group: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(cards.kinds[card] for card in group)

    def capability(card: int) -> tuple[object, int]:
        return cards.gpus[card].compute_capability, card

    ranked = [tuple(sorted(group, key=capability)) for group in groups]
    ranked.sort(key=lambda group: (cards.gpus[group[0]].compute_capability, -_memory(cards, group), group))
    if stages == 1:
        ranked[1:] = sorted(ranked[1:])  # only the first copy's first card decides for others
    yield tuple(ranked)
    if len({kinds(group) for group in ranked}) < 2:
        return
    columns = [ranked[stage * copies : (stage + 1) * copies] for stage in range(stages)]
    lowest = cards.gpus[ranked[0][0]].compute_capability
    seen = {tuple(kinds(group) for group in ranked)}
    for first in range(stages):
        if cards.gpus[columns[first][0][0]].compute_capability > lowest:
            continue
        for last in reversed(range(stages)):
            if last == first and stages > 1:
                continue
            between = sorted(column for place, column in enumerate(columns) if place not in (first, last))
            ends = [columns[last]] if stages > 1 else []
            for inner in (between, between[::-1]):
                ordered = [columns[first], *inner, *ends]
                arranged = tuple(column[copy] for copy in range(copies) for column in ordered)
                told = tuple(kinds(group) for group in arranged)
                if told not in seen:
                    seen.add(told)
                    yield arranged


def _memory(cards: Cards, group: tuple[int, ...]) -> int:
    return min(cards.gpus[card].memory_bytes for card in group)
