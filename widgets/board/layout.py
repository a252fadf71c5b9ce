"""Where everything on the board lies, and what a point on it means; pure.

Coordinates are cells of the stages' page, which scrolls.  Its columns are, in turn, the gap before a stage and the
stage, and at the end the place for a new one.
"""

from dataclasses import dataclass

from textual.geometry import Region

from gpudeck.services.plan.dragging import NewStage, OnCard, Rank, Target
from gpudeck.services.plan.types import Placement


@dataclass(frozen=True, slots=True)
class Density:
    """Sizes in cells.  A slot is one card's; below each is a row for the link to the next."""

    card_width: int
    lead: int  # the gap before the first stage
    gap: int  # the gap between two stages
    card_height: int
    head: int  # rows above the first slot
    framed: bool

    @property
    def pitch(self) -> int:
        return self.card_height + 1


WIDE = (28, 5, 8)
WIDEST = 40
NEW_STAGE = 28
NARROW = (22, 1, 6)  # two stages stand beside the pool on 80 columns
FRAMED = (5, 2, True)
FLAT = (2, 2, False)


def density_for(placement: Placement, width: int, height: int) -> Density:
    """The roomiest sizes at which the stages fit, else the smallest: then the page scrolls."""
    stages, ranks = max(len(placement.stages), 1), max(placement.tensor_parallel_size, 1)
    card_width, lead, gap = WIDE
    across = WIDE if lead + stages * (card_width + gap) <= width else NARROW
    if across is WIDE:
        # What is left over makes the bars longer, but not before the place for a new stage can tell what it would make.
        share = (width - lead - NEW_STAGE) // stages - gap
        across = (min(max(share, card_width), WIDEST), lead, gap)
    card_height, head, _ = FRAMED
    # The place for the next card is to be seen as well.
    down = FRAMED if head + ranks * (card_height + 1) + 3 <= height else FLAT
    return Density(*across, *down)


@dataclass(frozen=True, slots=True)
class StagesLayout:
    """The stages' page for one placement at one size of the view."""

    placement: Placement
    density: Density
    view_width: int
    view_height: int

    @classmethod
    def of(cls, placement: Placement, width: int, height: int) -> "StagesLayout":
        return cls(placement, density_for(placement, width, height), width, height)

    @property
    def width(self) -> int:
        """The width that the stages need; behind the last there is a narrow place for a new one at least."""
        return self.stage_x(max(len(self.placement.stages), 1)) - 1

    @property
    def height(self) -> int:
        ranks = max(self.placement.tensor_parallel_size, 1)
        return self.density.head + self.density.pitch * ranks + self.end_height

    @property
    def end_height(self) -> int:
        """The rows of the place at a stage's end, where the next card goes."""
        return 3 if self.density.framed else 1

    def stage_x(self, stage: int) -> int:
        """The left edge of a stage, or of the place for a new one behind the last."""
        density = self.density
        return density.lead + stage * (density.card_width + density.gap)

    def slot_y(self, place: int) -> int:
        return self.density.head + place * self.density.pitch

    def card(self, stage: int, place: int) -> Region:
        return Region(self.stage_x(stage), self.slot_y(place), self.density.card_width, self.density.card_height)

    def gap(self, position: int) -> Region:
        """The gap before a stage, over the whole height."""
        left = 0 if position == 0 else self.stage_x(position - 1) + self.density.card_width
        right = self.stage_x(position)
        return Region(left, 0, right - left, self.height)

    def region(self, target: Target) -> Region | None:
        """The cells that a target lights up; None for the pool, which is on the other page."""
        if isinstance(target, Rank):
            end = target.place == len(self.placement.stages[target.stage])
            y = self.slot_y(target.place)
            if end:
                return Region(self.stage_x(target.stage), y, self.density.card_width, self.end_height)
            return Region(self.stage_x(target.stage), y - 1, self.density.card_width, 1)
        if isinstance(target, NewStage):
            return self.new_stage(target.position)
        if isinstance(target, OnCard):
            place = self.place_of(target.gpu)
            return None if place is None else self.card(*place)
        return None

    def new_stage(self, position: int) -> Region:
        """What stands for a new stage: a card's outline at the end, a narrow strip between stages."""
        stages = len(self.placement.stages)
        density = self.density
        if position == stages:
            left = self.stage_x(stages)
            if stages and self.view_width < left + density.card_width:
                left -= density.gap
            width = min(density.card_width, max(density.gap - 1, self.view_width - left))
            return Region(left, self.slot_y(0), width, max(density.card_height, 4))
        gap = self.gap(position)
        return Region(gap.x, self.slot_y(0), gap.width, max(density.card_height, 4))

    def place_of(self, gpu: int) -> tuple[int, int] | None:
        for stage, cards in enumerate(self.placement.stages):
            if gpu in cards:
                return stage, cards.index(gpu)
        return None

    def card_at(self, x: int, y: int) -> int | None:
        """The card that is drawn at a point."""
        for stage, cards in enumerate(self.placement.stages):
            for place, gpu in enumerate(cards):
                if self.card(stage, place).contains(x, y):
                    return gpu
        return None

    def target_at(self, x: int, y: int) -> Target:
        """What a card dropped at a point would land on: every point of the page is a target.

        On a card: a swap.  On the row above a card: before it.  Anywhere below the last card: at the end.
        """
        for stage, cards in enumerate(self.placement.stages):
            left = self.stage_x(stage)
            if x < left:
                return NewStage(stage)
            if x < left + self.density.card_width:
                return self._target_in(stage, cards, y)
        return NewStage(len(self.placement.stages))

    def _target_in(self, stage: int, cards: tuple[int, ...], y: int) -> Target:
        for place, gpu in enumerate(cards):
            top = self.slot_y(place)
            if y < top:
                return Rank(stage, place)
            if y < top + self.density.card_height:
                return OnCard(gpu)
        return Rank(stage, len(cards))
