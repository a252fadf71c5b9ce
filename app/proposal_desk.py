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
        from gpudeck.services.plan.propose import nearest, propose

        box, model, spec, used = question.box, question.model, question.spec, _with_claims(question)
        found = propose(box, model, spec, used, objective=question.objective)
        offers = tuple(Offer(((spec, judgement),), why) for spec, judgement, why in found)
        refusal = ""
        if not offers:
            finding = nearest(box, model, spec, used)
            refusal = f"{finding.message} {finding.fix or ''}".strip()
        self._post(ProposalsArrived(question, offers, refusal))


def _with_claims(question: Question) -> dict[int, int]:
    """Memory in use, the cards of other engines and plans counted as full: a proposal leaves them alone."""
    used = dict(question.used)
    for spec in question.around.neighbours:
        for card in spec.placement.gpus:
            gpu = question.box.gpu(card)
            if gpu is not None and card not in (*question.spec.shared_gpus, *spec.shared_gpus):
                used[card] = gpu.memory_bytes
    return used
