"""Placements that will run, for a model on a box where none is given."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from gpudeck.services.box.types import Box
from gpudeck.services.memory.plan import memory_detail
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import Finding, Judgement, Severity, VerdictState
from gpudeck.services.plan.proposals.cards import cards_of, with_screens
from gpudeck.services.plan.proposals.objective import Objective
from gpudeck.services.plan.proposals.weighing import Candidate, Shape, candidates
from gpudeck.services.plan.proposals.why import why
from gpudeck.services.plan.types import EngineSpec, Placement
from gpudeck.services.rules.architecture import PP_MIXED
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.rule import Rule
from gpudeck.services.rules.surroundings import Surroundings

__all__ = ["NO_PLACEMENT", "Objective", "Proposal", "nearest", "propose", "usable_cards"]

NO_PLACEMENT = Rule(
    "no-placement",
    Severity.ERROR,
    "No placement would start",
    "Every placement that was weighed is blocked.",
    "gpudeck: services/plan/propose.py",
)
Proposal = tuple[EngineSpec, Judgement, str]
_NOTHING_USED: Mapping[int, int] = MappingProxyType({})
_ALONE = Surroundings()
_MOST = 12  # proposals that are worth a look
# Judgements: of one family (shape and kinds of cards) until one is ready, and in all.
_TRIES, _JUDGED = 4, 64


def propose(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    used: Mapping[int, int] = _NOTHING_USED,
    *,
    tensor_parallel: int | None = None,
    pipeline_parallel: int | None = None,
    replicas: int | None = None,
    objective: Objective = Objective.CONTEXT,
    around: Surroundings = _ALONE,
    among: frozenset[int] | None = None,
) -> tuple[Proposal, ...]:
    """Placements of `spec` that are not blocked, best first, each with one line why.

    `spec.placement` does not count, and its layer_partition only for as many stages as it has entries.  Ready ones come
    before cautions, TP groups of one compute capability before mixed ones; then the order is the objective's
    (`proposals/objective.py`).  There is one of each shape and choice of cards.  A given size fixes that part of the
    shape, `among` the cards.  Where no max-model-len is asked for and the model's own does not fit, the proposal has
    the longest that does.
    """
    shape = Shape(tensor_parallel, pipeline_parallel, replicas)
    usable = usable_cards(box, model, spec, used, around, among)
    cards = cards_of(box, used, usable, with_screens(around.readings))
    for mixed in (False, True):
        weighed = candidates(cards, model, spec, shape, objective, around.memory_version, mixed=mixed)
        found = _judged(box, model, weighed, used, around, spec.options.max_model_len)
        if found or len({gpu.compute_capability for gpu in cards.gpus.values()}) < 2:
            return found
    return ()


def _judged(
    box: Box,
    model: ModelFacts,
    weighed: list[Candidate],
    used: Mapping[int, int],
    around: Surroundings,
    length: int | None,
) -> tuple[Proposal, ...]:
    """The best of each family that is not blocked.  The order among ready ones, and among cautions, is as weighed."""
    ready: dict[object, Proposal] = {}
    caution: dict[object, Proposal] = {}
    tries: Counter[object] = Counter()
    for candidate in weighed:
        family = candidate.family
        if family in ready or tries[family] >= _TRIES or not candidate.fits:
            continue
        tries[family] += 1
        judgement = judge(box, model, candidate.spec, used=used, around=around)
        if hopeless(candidate.spec.placement, judgement):
            tries[family] = _TRIES
        if judgement.state is not VerdictState.BLOCKED:
            shortened = candidate.spec.options.max_model_len != length
            told = why(box, model, candidate.spec, judgement.memory, shortened=shortened)
            proposal = candidate.spec, judgement, told
            (ready if judgement.state is VerdictState.READY else caution).setdefault(family, proposal)
        if len(ready) >= _MOST or tries.total() >= _JUDGED:
            break
    rest = [proposal for family, proposal in caution.items() if family not in ready]
    return (*ready.values(), *rest)[:_MOST]


def hopeless(placement: Placement, judgement: Judgement) -> bool:
    """Whether no order of these cards in this shape can be ready: one pipeline of several capabilities stays one."""
    rules = {finding.rule for finding in judgement.findings}
    return judgement.state is VerdictState.CAUTION and placement.replicas == 1 and PP_MIXED.id in rules


def usable_cards(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    used: Mapping[int, int],
    around: Surroundings,
    among: frozenset[int] | None = None,
) -> frozenset[int]:
    """The cards that do not block a plan by themselves."""
    asked = [gpu.index for gpu in box.gpus if among is None or gpu.index in among]
    refused: dict[int, set[tuple[str, str]]] = {}
    for card in asked:
        alone = EngineSpec(
            spec.name,
            spec.model,
            Placement(((card,),)),
            spec.options,
            program=spec.program,
            environment=spec.environment,
            shared_gpus=spec.shared_gpus,
        )
        judgement = judge(box, None, alone, used=used, around=around)
        refused[card] = {
            (finding.rule, finding.message) for finding in judgement.findings if finding.severity is Severity.ERROR
        }
        detail = memory_detail(box, model, alone, used, around.memory_version)
        if detail.settings.kv_cache_memory_bytes is None:
            refused[card] |= {("occupied", str(card)) for rank in detail.ranks if rank.free_at_start < rank.budget}
    # What blocks every card (a port that is taken) is no card's own.
    common = set.intersection(*refused.values()) if refused else set()
    return frozenset(card for card in asked if not refused[card] - common)


def nearest(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    used: Mapping[int, int] = _NOTHING_USED,
    *,
    tensor_parallel: int | None = None,
    pipeline_parallel: int | None = None,
    replicas: int | None = None,
    around: Surroundings = _ALONE,
) -> Finding:
    """Why nothing is proposed: what blocks the placement that comes nearest to running."""
    shape = Shape(tensor_parallel, pipeline_parallel, replicas)
    best: tuple[Candidate, Judgement] | None = None
    for cards in (cards_of(box, used, usable_cards(box, model, spec, used, around)), cards_of(box, used)):
        families: dict[object, Candidate] = {}
        weighed = candidates(cards, model, spec, shape, Objective.CONTEXT, around.memory_version, mixed=True)
        for candidate in weighed:
            families.setdefault(candidate.family, candidate)
        judged = [
            (candidate, judge(box, model, candidate.spec, used=used, around=around))
            for candidate in list(families.values())[:_JUDGED]
        ]
        best = min(judged, key=lambda pair: _distance(pair[1]), default=None)
        if best is not None:
            break
    if best is None:
        return NO_PLACEMENT.finding(
            f"This box has too few cards for {shape}: it has {len(box.gpus)}.", "Ask for a smaller shape."
        )
    blocking = best[1].findings[0]
    stages = " | ".join(",".join(str(gpu) for gpu in stage) for stage in best[0].spec.placement.stages)
    return NO_PLACEMENT.finding(
        f"No placement on this box would start.  The nearest, GPUs {stages}, is blocked: {blocking.message}",
        blocking.fix,
    )


def _distance(judgement: Judgement) -> tuple[int, int, int]:
    """Errors, the bytes that the fullest card lacks, and less KV cache."""
    errors = sum(finding.severity is Severity.ERROR for finding in judgement.findings)
    memory = judgement.memory
    if memory is None:
        return errors, 0, 0
    return errors, max(0, *(-part.free for part in memory.per_gpu)), -memory.kv_cache_tokens
