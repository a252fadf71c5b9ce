"""Moves of one card on a placement, and the history that undoes them.

Every move is a pure function from placement to placement.  It names stages and places as the placement that it is given
has them, with the moved card still where it was.  After a move the card stands in one place at most, no stage is empty,
and every other card keeps its order.  A card that is in no stage is in the pool, which a placement does not list.
"""

from dataclasses import dataclass, field, replace

from gpudeck.services.box.types import Box
from gpudeck.services.plan.types import Placement

HISTORY_LIMIT = 200


def unplaced(box: Box, placement: Placement) -> tuple[int, ...]:
    """The pool: the box's cards that the placement does not use, by index."""
    placed = set(placement.gpus)
    return tuple(sorted(gpu.index for gpu in box.gpus if gpu.index not in placed))


def where(placement: Placement, gpu: int) -> tuple[int, int] | None:
    """The stage and the place in it where a card stands; None for the pool."""
    for number, stage in enumerate(placement.stages):
        if gpu in stage:
            return number, stage.index(gpu)
    return None


def put_on_rank(placement: Placement, gpu: int, stage: int, place: int) -> Placement:
    """Insert a card before `place` of a stage; `place` may be the stage's size, which appends.

    Raises ValueError for a stage or place that is not there.
    """
    if not 0 <= stage < len(placement.stages):
        raise ValueError(f"there is no stage {stage}")
    if not 0 <= place <= len(placement.stages[stage]):
        raise ValueError(f"stage {stage} has no place {place}")
    stages = []
    for number, cards in enumerate(placement.stages):
        if number == stage:
            before, after = _without(cards[:place], gpu), _without(cards[place:], gpu)
            stages.append((*before, gpu, *after))
        else:
            stages.append(_without(cards, gpu))
    return _tidy(placement, stages)


def put_on_new_stage(placement: Placement, gpu: int, position: int) -> Placement:
    """Make a stage of this one card before stage `position`; the number of stages appends.

    Raises ValueError for a position that is not there.
    """
    if not 0 <= position <= len(placement.stages):
        raise ValueError(f"there is no place for a stage at {position}")
    stages = [_without(cards, gpu) for cards in placement.stages]
    stages.insert(position, (gpu,))
    return _tidy(placement, stages)


def swap(placement: Placement, gpu: int, other: int) -> Placement:
    """Let two cards take each other's place; a card from the pool sends the other one there."""

    def exchanged(card: int) -> int:
        return other if card == gpu else gpu if card == other else card

    return replace(placement, stages=tuple(tuple(exchanged(card) for card in cards) for cards in placement.stages))


def put_in_pool(placement: Placement, gpu: int) -> Placement:
    """Take a card out of every stage."""
    return _tidy(placement, [_without(cards, gpu) for cards in placement.stages])


def next_replicas(placement: Placement) -> Placement:
    """Read the same stages as the next larger number of equal copies, after the largest as one copy again."""
    count = len(placement.stages)
    larger = [copies for copies in range(placement.replicas + 1, count + 1) if count % copies == 0]
    return replace(placement, replicas=larger[0] if larger else 1)


def _without(cards: tuple[int, ...], gpu: int) -> tuple[int, ...]:
    return tuple(card for card in cards if card != gpu)


def _tidy(placement: Placement, stages: list[tuple[int, ...]]) -> Placement:
    """Drop empty stages; copies can never outnumber the stages that are left."""
    kept = tuple(cards for cards in stages if cards)
    return Placement(kept, max(1, min(placement.replicas, len(kept))))


@dataclass(frozen=True, slots=True)
class History:
    """The placement now, and the ones before and after it.  Immutable: each act returns another history."""

    present: Placement = field(default_factory=Placement)
    past: tuple[Placement, ...] = ()
    future: tuple[Placement, ...] = ()  # the next one to redo is the last

    def did(self, placement: Placement) -> "History":
        """The history after a change to `placement`; one that changes nothing leaves no trace."""
        if placement == self.present:
            return self
        return History(placement, (*self.past, self.present)[-HISTORY_LIMIT:])

    def undone(self) -> "History":
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (*self.future, self.present))

    def redone(self) -> "History":
        if not self.future:
            return self
        return History(self.future[-1], (*self.past, self.present), self.future[:-1])
