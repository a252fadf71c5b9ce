"""Proposals against every placement that there is, on small boxes."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import pytest

from gpudeck.services.box.types import GIB, Box, Link
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.proposals.cards import Cards, cards_of
from gpudeck.services.plan.proposals.grouping import Groups
from gpudeck.services.plan.proposals.objective import Order
from gpudeck.services.plan.proposals.weighing import Weigher
from gpudeck.services.plan.propose import Objective, propose
from gpudeck.services.plan.types import EngineSpec, Placement
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings
from tests.services.rules.plans import CROSSED, MIXED, a100, card, h100, l40s, model, rtx3090, rtx4090, spec, t4

VERSION = Surroundings().memory_version
FIVE = Box(
    (l40s(0), l40s(1), l40s(2), l40s(3), a100(4)),
    (Link(0, 2, "NV4"), Link(1, 3, "PIX"), Link(0, 1, "PHB"), Link(2, 3, "NODE")),
    name="bridge and switch",
)
TWO_SOCKETS = Box(tuple(replace(rtx4090(index), numa=str(index // 2)) for index in range(4)), name="two sockets")
UNEVEN = Box(
    (card(0, "NVIDIA GeForce RTX 2080 Ti", 22528, "7.5"), card(1, "NVIDIA TITAN RTX", 24576, "7.5"), t4(2), t4(3)),
    (Link(0, 1, "NV2"),),
    name="uneven",
)
KINDS = Box((rtx4090(0), a100(1), rtx3090(2), h100(3)), (Link(1, 3, "PIX"),), name="four kinds")
NEAR = Box(tuple(h100(index) for index in range(5)), tuple(Link(at, at + 1, "NV6") for at in range(4)), name="chain")
BOXES = {box.name: box for box in (CROSSED, MIXED, FIVE, TWO_SOCKETS, UNEVEN, KINDS, NEAR)}


def sequences(cards: tuple[int, ...], size: int, count: int) -> Iterator[Groups]:
    """Every ordered choice of disjoint groups."""
    if count == 0:
        yield ()
        return
    for group in combinations(cards, size):
        rest = tuple(card for card in cards if card not in group)
        for others in sequences(rest, size, count - 1):
            yield (group, *others)


def every_placement(cards: Cards) -> Iterator[Placement]:
    there = tuple(sorted(cards.gpus, key=lambda card: (cards.gpus[card].compute_capability, card)))
    for size in range(1, len(there) + 1):
        for count in range(1, len(there) // size + 1):
            for groups in sequences(there, size, count):
                for copies in range(1, count + 1):
                    if count % copies == 0:
                        yield Placement(groups, copies)


def best_of_all(
    box: Box, facts: ModelFacts, asked: EngineSpec, used: dict[int, int], objective: Objective
) -> tuple[EngineSpec, Order] | None:
    """The first ready one in the objective's order, else the first caution; groups of one capability before others."""
    cards = cards_of(box, used)
    weigher = Weigher(cards, facts, asked, objective, VERSION)
    weighed = sorted((weigher.weigh(placement) for placement in every_placement(cards)), key=lambda found: found.order)
    for mixed in (False, True):
        caution = None
        for candidate in weighed:
            groups = candidate.spec.placement.stages
            alike = all(len({cards.gpus[gpu].compute_capability for gpu in group}) == 1 for group in groups)
            if (alike or mixed) and candidate.fits:
                state = judge(box, facts, candidate.spec, used=used).state
                if state is VerdictState.READY:
                    return candidate.spec, candidate.order
                if state is VerdictState.CAUTION and caution is None:
                    caution = candidate.spec, candidate.order
        if caution is not None:
            return caution
    return None


@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize(
    ("name", "length"),
    [("llama-3.1-8b", 8192), ("llama-3.1-8b", None), ("qwen2.5-32b", None), ("qwen3-30b-a3b", 4096)],
)
@pytest.mark.parametrize("box", BOXES)
def test_no_placement_is_better(box: str, name: str, length: int | None, objective: Objective) -> None:
    used = {1: 6 * GIB} if box in ("two sockets", "bridge and switch") else {}
    asked = spec(max_model_len=length)
    found = propose(BOXES[box], model(name), asked, used, objective=objective)
    best = best_of_all(BOXES[box], model(name), asked, used, objective)
    if best is None:
        assert found == ()
        return
    cards = cards_of(BOXES[box], used)
    weigher = Weigher(cards, model(name), asked, objective, VERSION)
    ours = weigher.weigh(found[0][0].placement).order
    assert ours <= best[1], (found[0][0].placement, best[0].placement, best[0].layer_partition)
