"""What a check of an engine finds: one line for each thing that must hold."""

from dataclasses import dataclass
from enum import Enum


class Outcome(str, Enum):
    PASSED = "passed"
    FAILED = "failed"
    NOTE = "note"  # worth knowing, and no failure of the engine
    SKIPPED = "skipped"  # could not be looked at; the words say why


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the list; `title` and `words` may hold foreign text that is printable."""

    id: str  # "models", "prompt-short", "stream", "card-busy" …: the same in every run
    title: str
    outcome: Outcome
    words: str = ""


def passed(items: tuple[Item, ...]) -> bool:
    """Whether nothing failed, and at least something was looked at."""
    outcomes = {item.outcome for item in items}
    return Outcome.FAILED not in outcomes and Outcome.PASSED in outcomes
