"""How a model fits a box, as data."""

from dataclasses import dataclass, field

from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.types import Placement


@dataclass(frozen=True, slots=True)
class Fit:
    """`context` in tokens, at most the model's own; of a model that does not fit `why` says what is in the way."""

    state: VerdictState
    placement: Placement = field(default_factory=Placement)
    context: int = 0
    why: str = ""
