"""Weighing placements away from the screen's thread: sixteen cards take up to a second."""

import threading

from gpudeck.app.feeds import Post
from gpudeck.app.messages import ProposalsArrived
from gpudeck.app.offers import Offer, Question


class ProposalDesk:
    def __init__(self, post: Post) -> None:
        self._post = post

    def weigh(self, question: Question) -> None:
        """ProposalsArrived follows."""
        threading.Thread(target=self._weigh, args=(question,), name="propose", daemon=True).start()

    def _weigh(self, question: Question) -> None:
        from gpudeck.services.plan.proposals.combinations import combinations
        from gpudeck.services.plan.propose import nearest, propose

        box, model, spec, used = question.box, question.model, question.spec, question.used
        beside, objective = question.around, question.objective
        offers = [
            Offer(((spec, judgement),), why)
            for spec, judgement, why in propose(box, model, spec, used, objective=objective, around=beside)
        ]
        # Several engines stand after the best single one: they answer another wish, and would be overlooked at the end.
        offers[1:1] = [
            Offer(tuple((spec, judgement) for spec, judgement, _ in found.proposals), found.why)
            for found in combinations(box, model, spec, used, objective=objective, around=beside)
            if offers
        ]
        refusal = ""
        if not offers:
            finding = nearest(box, model, spec, used, around=beside)
            refusal = f"{finding.message} {finding.fix or ''}".strip()
        self._post(ProposalsArrived(question, tuple(offers), refusal))
