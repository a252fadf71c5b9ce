"""Other orders and groups of the same cards: what a fix puts in a placement's stead."""

from gpudeck.services.box.types import ComputeCapability
from gpudeck.services.plan.changes import Change
from gpudeck.services.plan.types import Placement
from gpudeck.services.rules.rule import Plan


def regrouped(plan: Plan, place: int, group: tuple[int, ...]) -> Change:
    """The stage at `place` becomes `group`; cards that it gives up go where those came from that it takes."""
    stages = plan.spec.placement.stages
    gone = [card for card in stages[place] if card not in group]
    new = [card for card in group if card not in stages[place]]
    exchanged = dict(zip(new, gone, strict=False))
    rebuilt = tuple(
        group if number == place else tuple(exchanged.get(card, card) for card in stage)
        for number, stage in enumerate(stages)
    )
    return Change(placement=Placement(rebuilt, plan.spec.placement.replicas))


def lowest_first(plan: Plan) -> Change | None:
    """The same cards with those of the lowest capability first, each group kept together; None for several copies.

    A layer partition moves with its stages.
    """
    placement = plan.spec.placement
    known = {gpu.index: gpu.compute_capability for gpu in plan.box.gpus}
    if placement.replicas != 1 or any(
        not stage or any(card not in known for card in stage) for stage in placement.stages
    ):
        return None

    def capability(card: int) -> ComputeCapability:
        return known[card]

    inside = [tuple(sorted(stage, key=capability)) for stage in placement.stages]
    order = sorted(range(len(inside)), key=lambda number: known[inside[number][0]])
    partition = plan.spec.layer_partition
    moved = None
    if partition is not None and len(partition) == len(inside):
        moved = tuple(partition[number] for number in order)
    return Change(placement=Placement(tuple(inside[number] for number in order)), layer_partition=moved)
