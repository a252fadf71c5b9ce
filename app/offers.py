"""What is proposed for a plan, as the panel holds it: one engine, or several beside each other."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpudeck.services.box.types import Box
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import Judgement, VerdictState
from gpudeck.services.plan.proposals.objective import Objective
from gpudeck.services.plan.types import EngineSpec, Placement
from gpudeck.services.rules.surroundings import Surroundings
from gpudeck.widgets.glyphs import Glyphs, joined, tokens_in_short
from gpudeck.widgets.proposal_list import ProposalView

_WORST_FIRST = (VerdictState.BLOCKED, VerdictState.CAUTION, VerdictState.READY)


@dataclass(frozen=True, slots=True)
class Question:
    """What placements are asked for; `plan` is the key of the plan that they are for."""

    box: Box
    model: ModelFacts
    spec: EngineSpec
    used: Mapping[int, int]
    around: Surroundings
    objective: Objective
    plan: int


@dataclass(frozen=True, slots=True)
class Offer:
    """One proposal: the engines that it makes, mostly one, each with its judgement, and why in one line."""

    engines: tuple[tuple[EngineSpec, Judgement], ...]
    why: str

    @property
    def placement(self) -> Placement | None:
        """The placement of a proposal of one engine."""
        return self.engines[0][0].placement if len(self.engines) == 1 else None


def offer_view(offer: Offer, glyphs: Glyphs) -> ProposalView:
    """A proposal as its row shows it; of several engines the worst verdict, and the sum of what they hold."""
    states = [judgement.state for _, judgement in offer.engines]
    placements = [spec.placement for spec, _ in offer.engines]
    memories = [judgement.memory for _, judgement in offer.engines if judgement.memory is not None]
    tokens = sum(memory.total_tokens for memory in memories)
    at_once = sum(memory.total_concurrency for memory in memories)
    length = min((memory.max_model_len for memory in memories), default=0)
    return ProposalView(
        state=next(state for state in _WORST_FIRST if state in states),
        cards=" + ".join(cards_in_words(placement) for placement in placements),
        shape=" + ".join(shape_in_words(placement, glyphs) for placement in placements),
        yields=joined(
            (f"{tokens_in_short(tokens)} tokens", f"{at_once:.1f} {glyphs.times} {length:,}") if memories else (),
            glyphs.dot,
        ),
        why=offer.why,
    )


def cards_in_words(placement: Placement) -> str:
    """`0,2 | 1,3`: stages parted by a line."""
    return " | ".join(",".join(map(str, stage)) for stage in placement.stages)


def shape_in_words(placement: Placement, glyphs: Glyphs) -> str:
    """`TP2×PP2`, with copies `TP2×PP1×DP2`."""
    parts = [f"TP{placement.tensor_parallel_size}", f"PP{placement.pipeline_parallel_size}"]
    if placement.replicas > 1:
        parts.append(f"DP{placement.replicas}")
    return glyphs.times.join(parts)
