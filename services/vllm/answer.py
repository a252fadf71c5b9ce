"""What the installed vLLM answers to a command line."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Installed:
    """`version` is vLLM's own ("0.32.0"), `cuda` the one that its torch was built for; None where not found."""

    python: Path
    version: str | None = None
    cuda: str | None = None


class Reply(Enum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class Answer:
    """vLLM's reply.  `text` is its decisive sentence where it refused, and why it could not be asked where it was not.

    `flags_only` tells that only the names of the options were compared with what `--help` lists.
    """

    reply: Reply
    text: str = ""
    engine: Installed | None = None
    flags_only: bool = False
