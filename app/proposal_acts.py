"""Proposals: the best one with one key, the others in a list, for what the operator asks."""

from dataclasses import replace

from textual import on

from gpudeck.app.deck_app import PanelSetup
from gpudeck.app.draft_acts import DraftActs, around
from gpudeck.app.drafts import Draft
from gpudeck.app.messages import ProposalsArrived
from gpudeck.app.offers import Offer, Question, offer_view
from gpudeck.app.proposal_desk import ProposalDesk
from gpudeck.services.plan.naming import name_for
from gpudeck.services.plan.proposals.objective import Objective
from gpudeck.services.plan.types import Placement
from gpudeck.widgets.messages import ObjectiveAsked
from gpudeck.widgets.proposal_list import ProposalList


class ProposalActs(DraftActs):
    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        self._proposal_desk = ProposalDesk(self.post_message)
        self._objective = Objective.CONTEXT
        self._offers: tuple[Offer, ...] = ()  # the list that is open shows these
        self._proposed: Placement | None = None  # what p put on the board last

    def action_propose(self) -> None:
        """Put the best placement that gpudeck knows for this model on the board; where it stands, list the others."""
        state = self.state
        if state.plan_box is None or state.draft.model is None:
            self.say("Choose a model first (m): a placement is proposed for a model.", "warning")
            return
        if self._proposed is not None and state.draft.placement == self._proposed:
            names = [objective.value for objective in Objective]
            self.push_screen(ProposalList(names, self._objective.value, glyphs=self.glyphs), self._chosen_offer)
        self._weigh()

    @on(ObjectiveAsked)
    def _objective_asked(self, message: ObjectiveAsked) -> None:
        self._objective = Objective(message.objective)
        self._weigh()

    def _weigh(self) -> None:
        state, draft = self.state, self.state.draft
        if state.plan_box is None or draft.model is None:
            return
        # One copy is asked for, and no partition: a proposal brings its own.
        spec = replace(draft.spec(state.program), placement=Placement(), layer_partition=None)
        used, objective = state.used(), self._objective
        self._proposal_desk.weigh(
            Question(state.plan_box, draft.model, spec, used, around(state, draft), objective, draft.key)
        )

    @on(ProposalsArrived)
    def _proposals_arrived(self, message: ProposalsArrived) -> None:
        question, offers = message.question, message.offers
        if question.plan != self.state.draft.key:
            return  # the operator has gone on to another plan
        if isinstance(self.screen, ProposalList):
            if question.objective is self._objective:
                self._offers = offers
                views = tuple(offer_view(offer, self.glyphs) for offer in offers)
                self.screen.show(views, question.objective.value, message.refusal)
        elif not offers:
            self.say(message.refusal, "warning")
        else:
            self._put_on_board(offers[0])
            others = f" p again: {len(offers) - 1} more." if len(offers) > 1 else ""
            self.say(f"Proposed for {question.objective.value}: {offers[0].why}.{others}")

    def _chosen_offer(self, place: int | None) -> None:
        if place is not None and place < len(self._offers):
            self._put_on_board(self._offers[place])

    def _put_on_board(self, offer: Offer) -> None:
        """The first engine takes the place of the present plan, each further one becomes a plan beside it."""
        state, present = self.state, self.state.draft
        drafts = state.drafts
        taken, ports = {*state.engines, *drafts.names(), present.name}, set(state.ports_of_others(present.name))
        for number, (spec, _judgement) in enumerate(offer.engines):
            draft: Draft = replace(
                present, placement=spec.placement, options=spec.options, layer_partition=spec.layer_partition
            )
            if number == 0:
                drafts = drafts.changed(draft)
                ports.add(draft.options.port)
                continue
            name = name_for(present.name, taken)
            taken.add(name)
            options = draft.options
            while options.port in ports:
                options = replace(options, port=options.port + 1)
            ports.add(options.port)
            drafts = drafts.added(replace(draft, name=name, options=options))
        place = state.drafts.place
        self._proposed = offer.placement or drafts.all[place].placement
        self.drafts_changed(drafts.turned(place))
