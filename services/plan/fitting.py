"""Whether a model fits a box now: its best placement, and the longest context that this holds."""

from collections.abc import Mapping
from itertools import count

from gpudeck.services.box.types import Box
from gpudeck.services.memory.settings import AUTO_LENGTH
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.fit import Fit
from gpudeck.services.plan.propose import nearest, propose
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.rules.surroundings import Surroundings

_ALONE = Surroundings()


def fit(box: Box, model: ModelFacts, used: Mapping[int, int], around: Surroundings = _ALONE) -> Fit:
    """The best placement of this model under vLLM's own options, with the largest context that it holds.

    `used` is the bytes that are taken on each card, `around` the engines whose cards are not free.  Takes as long as a
    proposal does: up to a second for sixteen cards.
    """
    # A port can be had for any model: one that others have is not what keeps it off the box.
    taken = {neighbour.options.port for neighbour in around.neighbours}
    port = next(number for number in count(8000) if number not in taken)
    spec = EngineSpec("fit", model.path, Placement(), EngineOptions(port=port, max_model_len=AUTO_LENGTH))
    found = propose(box, model, spec, used, around=around)
    if not found:
        return Fit(VerdictState.BLOCKED, why=nearest(box, model, spec, used, around=around).message)
    best, judgement, why = found[0]
    context = 0 if judgement.memory is None else judgement.memory.max_model_len
    return Fit(judgement.state, best.placement, context, why)
