"""The outcome of one look at one part."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from gpudeck.services.errors import OperatorError


class Health(str, Enum):
    FINE = "ok"
    LESS = "less"  # gpudeck works, with something missing
    MISSING = "missing"  # something needed is not there


@dataclass(frozen=True, slots=True)
class Check:
    """One part: how it is, and in one sentence what that means and what to do."""

    part: str
    health: Health
    says: str


def told(part: str, check: Callable[[], Check], *, lacking: Health) -> Check:
    """The check's outcome, or the sentence that it raises."""
    try:
        return check()
    except OperatorError as error:
        return Check(part, lacking, str(error))
