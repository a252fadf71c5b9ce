"""One copy of a placement more or less: data parallelism on the cards that are left."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gpudeck.services.box.types import Box, Gpu
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.links import link_rank, link_table
from gpudeck.services.plan.placing import unplaced
from gpudeck.services.plan.types import Placement


def with_copy(box: Box, placement: Placement, taken: Collection[int] = ()) -> Placement:
    """The placement with one more copy of its shape, on unplaced cards that are not `taken`.

    Each stage takes cards like those of the first copy's stage where there are some, the best linked ones together.
    Raises OperatorError where too few cards are left.
    """
    shape = placement.stages[: placement.pipeline_parallel_size]
    left = [gpu for card in unplaced(box, placement) if card not in taken and (gpu := box.gpu(card)) is not None]
    wanted = sum(len(stage) for stage in shape)
    if not wanted:
        raise OperatorError("A copy of nothing can not be made: place the first copy's cards.")
    if len(left) < wanted:
        raise OperatorError(
            f"One more copy takes {wanted} card{'' if wanted == 1 else 's'}, and {len(left) or 'none'} "
            f"{'is' if len(left) == 1 else 'are'} free: make the copies smaller, or free cards of other plans."
        )
    table = link_table(box)
    stages = []
    for stage in shape:
        group = _group(len(stage), box.gpu(stage[0]), left, table)
        left = [gpu for gpu in left if gpu not in group]
        stages.append(tuple(sorted(gpu.index for gpu in group)))
    return replace(placement, stages=(*placement.stages, *stages), replicas=placement.replicas + 1)


def without_copy(placement: Placement) -> Placement:
    """The placement without its last copy; the only one stays."""
    if placement.replicas < 2:
        return placement
    kept = len(placement.stages) - placement.pipeline_parallel_size
    return replace(placement, stages=placement.stages[:kept], replicas=placement.replicas - 1)


def _group(size: int, like: Gpu | None, left: Sequence[Gpu], table: Mapping[tuple[int, int], str]) -> tuple[Gpu, ...]:
    """`size` of the cards that are left: from each as the first, the one that fits best is taken, again and again."""

    def alike(gpu: Gpu) -> tuple[bool, bool]:
        if like is None:
            return (False, False)
        return (gpu.compute_capability == like.compute_capability, gpu.memory_bytes == like.memory_bytes)

    def grown(first: Gpu) -> tuple[Gpu, ...]:
        group = [first]
        while len(group) < size:
            others = [gpu for gpu in left if gpu not in group]
            group.append(max(others, key=lambda gpu: (alike(gpu), weakest((gpu, *group)), -gpu.index)))
        return tuple(group)

    def weakest(group: Sequence[Gpu]) -> int:
        return min(link_rank(table[a.index, b.index]) for a in group for b in group if a is not b)

    def worth(group: tuple[Gpu, ...]) -> tuple[object, ...]:
        return (sorted(map(alike, group)), weakest(group) if size > 1 else 0, [-gpu.index for gpu in group])

    return max((grown(first) for first in left), key=worth)
