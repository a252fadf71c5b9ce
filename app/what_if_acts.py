"""What if: plans that count with cards and bridges which the box does not have."""

from dataclasses import replace

from gpudeck.app.proposal_acts import ProposalActs
from gpudeck.services.plan.what_if import Addition, possible
from gpudeck.widgets.choice_list import ChoiceList


class WhatIfActs(ProposalActs):
    def action_what_if(self) -> None:
        """Choose a card or a bridge to count with."""
        box = self.state.plan_box
        if box is None:
            self.say("The box is not read yet: a card is added to one that is known.")
            return
        found = possible(box, self.deck.board.chosen)

        def chosen(place: int | None) -> None:
            if place is None:
                return
            words, addition = found[place]
            self._count_with((*self.state.additions, addition))
            self.say(f"What if: {words}. Nothing is started like that; W goes back to the box as it is.")

        note = "Added to the board and to its verdict, to see what it would change. A bridge is put at the chosen card."
        lines = [words for words, _ in found]
        self.push_screen(ChoiceList("What if there were", note, lines, act="count with it", glyphs=self.glyphs), chosen)

    def action_as_it_is(self) -> None:
        """Go back to the box as it is; cards that are not there leave every plan."""
        if not self.state.additions:
            self.say("This is the box as it is; w adds a card or a bridge to it.")
            return
        self._count_with(())
        self.say("The box as it is.")

    def _count_with(self, additions: tuple[Addition, ...]) -> None:
        state = replace(self.state, additions=additions)
        box = state.plan_box
        there = frozenset(gpu.index for gpu in box.gpus) if box is not None else frozenset()
        self.change(self.judged(replace(state, drafts=state.drafts.only_on(there))))
