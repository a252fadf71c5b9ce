"""Weighing placements away from the screen's thread: sixteen cards take up to a second."""

import threading

from gpudeck.app.feeds import Post
from gpudeck.app.messages import ProposalsArrived
from gpudeck.app.offers import Offer, Question, with_claims


class ProposalDesk:
    def __init__(self, post: Post) -> None:
        self._post = post

    def weigh(self, question: Question) -> None:
        """ProposalsArrived follows."""
        threading.Thread(target=self._weigh, args=(question,), name="propose", daemon=True).start()

    def _weigh(self, question: Question) -> None:
        from gpudeck.services.plan.propose import nearest, propose

        box, model, spec = question.box, question.model, question.spec
        used = with_claims(box, question.used, question.around.neighbours, question.spec.shared_gpus)
        found = propose(box, model, spec, used, objective=question.objective)
        offers = tuple(Offer(((spec, judgement),), why) for spec, judgement, why in found)
        refusal = ""
        if not offers:
            finding = nearest(box, model, spec, used)
            refusal = f"{finding.message} {finding.fix or ''}".strip()
        self._post(ProposalsArrived(question, offers, refusal))
