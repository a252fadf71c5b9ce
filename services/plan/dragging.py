"""Moving one card by hand: lift, hover, drop or cancel, the same for the mouse and for keys.

A `Drag` is one card in the air.  It is immutable: hovering returns another one.  Whoever shows the board keeps the
current drag, or None while no card is lifted.  Targets name stages and places as the placement has them at the lift.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from gpudeck.services.plan import placing
from gpudeck.services.plan.types import Placement


@dataclass(frozen=True, slots=True)
class Pool:
    """Back to the cards that are not placed."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Into a stage, before the card at `place`; the stage's size is the end of it."""

    stage: int
    place: int


@dataclass(frozen=True, slots=True)
class NewStage:
    """A stage of its own before stage `position`; the number of stages is the end of the pipeline."""

    position: int


@dataclass(frozen=True, slots=True)
class OnCard:
    """Onto another card: the two change places."""

    gpu: int


Target = Pool | Rank | NewStage | OnCard


class Direction(Enum):
    UP = "up"
    DOWN = "down"
    LEFT = "left"
    RIGHT = "right"


def land(placement: Placement, gpu: int, target: Target) -> Placement:
    """The placement after a card was dropped on a target.  Raises ValueError for a target that is not there."""
    if isinstance(target, Pool):
        return placing.put_in_pool(placement, gpu)
    if isinstance(target, Rank):
        return placing.put_on_rank(placement, gpu, target.stage, target.place)
    if isinstance(target, NewStage):
        return placing.put_on_new_stage(placement, gpu, target.position)
    return placing.swap(placement, gpu, target.gpu)


@dataclass(frozen=True, slots=True)
class Drag:
    """A lifted card.  `target` is where it would land; None is where it came from."""

    placement: Placement  # as it was at the lift
    gpu: int
    target: Target | None = None

    def hover(self, target: Target | None) -> "Drag":
        """Aim at a target; one that would change nothing is the card's own place."""
        if target is not None and land(self.placement, self.gpu, target) == self.placement:
            target = None
        return self if target == self.target else replace(self, target=target)

    def drop(self) -> Placement:
        """The placement that a drop makes now."""
        return self.placement if self.target is None else land(self.placement, self.gpu, self.target)

    def cancel(self) -> Placement:
        return self.placement

    def targets(self) -> tuple[Target, ...]:
        """Every target whose drop would change the placement, from left to right and from top to bottom."""
        return tuple(target for column in self._columns() for target in column if target is not None)

    def step(self, direction: Direction) -> "Drag":
        """Aim at the next target in a direction, as they lie on the board; at its edge nothing changes.

        The columns are the pool, then in turn the gap before a stage and the stage, and the gap at the end.  Coming in
        from the side, a stage offers its end first: that is how groups are built.
        """
        columns = self._columns()
        column = next(number for number, slots in enumerate(columns) if self.target in slots)
        slots = columns[column]
        if direction in (Direction.UP, Direction.DOWN):
            slot = slots.index(self.target) + (1 if direction is Direction.DOWN else -1)
            return self.hover(slots[slot]) if 0 <= slot < len(slots) else self
        column += 1 if direction is Direction.RIGHT else -1
        return self.hover(columns[column][-1]) if 0 <= column < len(columns) else self

    def _columns(self) -> list[tuple[Target | None, ...]]:
        """The targets as they lie on the board; None stands at the card's own place, in one column exactly."""
        home = placing.where(self.placement, self.gpu)
        columns: list[tuple[Target | None, ...]] = [(None if home is None else Pool(),)]
        for stage, cards in enumerate(self.placement.stages):
            columns.append((NewStage(stage),))
            slots: list[Target | None] = []
            for place, card in enumerate(cards):
                slots.append(Rank(stage, place))
                slots.append(None if home == (stage, place) else OnCard(card))
            columns.append((*slots, Rank(stage, len(cards))))
        columns.append((NewStage(len(self.placement.stages)),))
        useful = (tuple(slot for slot in column if slot is None or self._changes(slot)) for column in columns)
        return [column for column in useful if column]

    def _changes(self, target: Target) -> bool:
        return land(self.placement, self.gpu, target) != self.placement


def neighbour(placement: Placement, pool: Sequence[int], gpu: int | None, direction: Direction) -> int | None:
    """The card that lies next to another in a direction; the card itself at an edge, None on an empty board.

    The pool is the column before the first stage.  From None, or a card that is not there, the first card is next.
    """
    columns = [tuple(column) for column in (pool, *placement.stages) if column]
    column = next((number for number, cards in enumerate(columns) if gpu in cards), None)
    if column is None or gpu is None:
        return columns[0][0] if columns else None
    row = columns[column].index(gpu)
    if direction is Direction.UP:
        row -= 1
    elif direction is Direction.DOWN:
        row += 1
    else:
        column += 1 if direction is Direction.RIGHT else -1
        if not 0 <= column < len(columns):
            return gpu
        row = min(row, len(columns[column]) - 1)
    return columns[column][row] if 0 <= row < len(columns[column]) else gpu
