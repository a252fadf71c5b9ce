"""What placements are chosen for, and the order that follows from it."""

import math
from dataclasses import dataclass
from enum import Enum

from gpudeck.services.plan.estimate import Speeds
from gpudeck.services.plan.findings import MemoryPlan
from gpudeck.services.plan.links import link_rank
from gpudeck.services.plan.proposals.cards import Cards
from gpudeck.services.plan.types import Placement

# Differences below a tenth in what runs at once do not decide: speed does.
_STEP = math.log(1.1)
# Where one card a stage stands among TP groups: behind NVLink and near PCIe, before groups across NUMA nodes.
_NO_TP = link_rank("NODE")
Order = tuple[float | int | tuple[int, ...], ...]


class Objective(str, Enum):
    """What a placement is chosen for."""

    CONTEXT = "context"  # the largest context, up to max-model-len, on the fewest and best linked cards
    CONCURRENCY = "concurrency"  # the most requests of max-model-len tokens at once, over all copies
    LATENCY = "latency"  # the fastest single stream


@dataclass(frozen=True, slots=True)
class Merits:
    """What the objectives look at.  `context` is the longest request that fits, up to max-model-len."""

    context: int
    tokens: int  # of KV cache in one copy
    short: bool  # the context is less than what was asked for, or than the model's own
    at_once: float  # requests of the asked length, or the model's own, over all copies, at most max-num-seqs in each
    single: float  # tokens a second of one request
    together: float  # and of all that fit
    weakest: int  # `link_rank` of the weakest link in a TP group
    links: tuple[int, int]  # all links of TP groups together; pairs on the same processor
    taken: int  # what others hold on the cards
    screens: int  # cards that also draw a screen
    mixed: int  # TP groups of cards that are not alike


def merits(
    cards: Cards,
    placement: Placement,
    memory: MemoryPlan | None,
    speeds: Speeds | None,
    *,
    max_num_seqs: int,
    length: int | None,
) -> Merits:
    """The merits of a placement; `length` is the one that was asked for, or the model's own."""
    weakest, total, near, mixed = 1 << 20, 0, 0, 0
    for group in placement.stages:
        mixed += len({cards.kinds[card] for card in group}) > 1
        for place, a in enumerate(group):
            for b in group[place + 1 :]:
                rank = cards.ranks[a, b]
                weakest = min(weakest, rank)
                total += rank
                near += cards.near[a, b]
    context, at_once = 0, 0.0
    if memory is not None:
        context = memory.max_model_len
        # What a length takes is not its share alone where windows are, so that whole requests are counted.
        each = memory.max_concurrency * context / max(length or context, 1) / max(memory.kv_cache_tokens, 1)
        copies = memory.copies or (memory.kv_cache_tokens,)
        at_once = sum(min(each * tokens, float(max_num_seqs)) for tokens in copies)
    return Merits(
        context=context,
        short=length is not None and context < length,
        tokens=memory.kv_cache_tokens if memory is not None else 0,
        at_once=at_once,
        single=round(speeds.single, 3) if speeds is not None else 0.0,
        together=round(speeds.together, 3) if speeds is not None else 0.0,
        weakest=weakest if placement.tensor_parallel_size > 1 else _NO_TP,
        links=(total, near),
        taken=sum(cards.taken[card] for card in placement.gpus),
        screens=sum(card in cards.screens for card in placement.gpus),
        mixed=mixed,
    )


def order(objective: Objective, placement: Placement, found: Merits) -> Order:
    """What placements are sorted by, in ascending order.

    Context: the longest request, on the fewest cards, the best linked, in the fewest stages, with the most KV cache;
    cards count in powers of two, since three or five of them can mostly be no more than stages.
    Concurrency: the most requests at once, then the most tokens a second for all of them.
    Latency: the most tokens a second for one.  In the end cards that nobody else uses, those without a
    screen, and the better links.
    """
    size, stages = len(placement.gpus), placement.pipeline_parallel_size
    links = tuple(-part for part in found.links)
    last = (found.taken, found.screens, found.mixed, *links, *placement.gpus)
    if objective is Objective.CONTEXT:
        power = max(size - 1, 0).bit_length()
        return (-found.context, power, -found.weakest, stages, size, -found.tokens, -found.single, *last)
    if objective is Objective.CONCURRENCY:
        step = math.floor(math.log(found.at_once) / _STEP) if found.at_once > 0 else -1000
        return (-step, -found.together, size, -found.weakest, -found.tokens, *last)
    return (found.short, -found.single, size, stages, -found.weakest, -found.tokens, *last)
