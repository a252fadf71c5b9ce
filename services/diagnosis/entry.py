"""One entry of the failure table: the texts it knows, and what it says to them."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from gpudeck.services.box.types import Gpu
from gpudeck.services.diagnosis.ranks import rank_of_writer
from gpudeck.services.diagnosis.types import Around, RunFacts
from gpudeck.services.plan.changes import Change
from gpudeck.services.plan.types import EngineOptions


@dataclass(frozen=True, slots=True)
class Sign:
    """A text that gives a failure away: a cheap literal, and the pattern that is looked for where it stands."""

    literal: str
    pattern: re.Pattern[str]


def sign(literal: str, pattern: str | None = None) -> Sign:
    """`pattern` must hold `literal`; left out, the literal is all.  Patterns are run on at most 8 KiB."""
    return Sign(literal, re.compile(re.escape(literal) if pattern is None else pattern, re.ASCII))


@dataclass(frozen=True, slots=True)
class Advice:
    """What an entry says to one line; None keeps the entry's general words."""

    meaning: str | None = None
    fix: str | None = None
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """One line that an entry knows."""

    match: re.Match[str]
    text: str  # the whole line, without its prefixes
    writer: str  # "Worker_TP1", "" where the line names none
    run: RunFacts
    around: Around

    def number(self, group: str) -> int | None:
        """A group as a whole number; None where it is not there or out of all bounds."""
        text = self._group(group).replace(",", "")
        return int(text) if text.isdecimal() and len(text) < 16 else None

    def decimal(self, group: str) -> float | None:
        text = self._group(group)
        try:
            return float(text) if text and len(text) < 32 else None
        except ValueError:
            return None

    def word(self, group: str) -> str:
        """A group as text; "" where it is not there."""
        return self._group(group)

    def _group(self, group: str) -> str:
        return self.match.groupdict().get(group) or ""

    @property
    def options(self) -> EngineOptions | None:
        """The engine's options: its spec's, else what its log says that it was given; None where neither is known."""
        if self.around.spec is not None:
            return self.around.spec.options
        given = self.run.given
        if not given:
            return None
        port, share = given.get("port", 8000), given.get("gpu_memory_utilization")
        tokens = given.get("max_num_batched_tokens")
        return EngineOptions(
            host=str(given.get("host") or EngineOptions().host),
            port=port if isinstance(port, int) and 0 < port < 65536 else 8000,
            gpu_memory_utilization=float(share) if isinstance(share, float) and 0 < share <= 1 else None,
            max_num_batched_tokens=tokens if isinstance(tokens, int) and 0 < tokens < 1 << 40 else None,
        )

    @property
    def gpu(self) -> Gpu | None:
        """The card that the line is about: by the ordinal it names, else by the rank of who wrote it."""
        spec, snapshot = self.around.spec, self.around.snapshot
        if spec is None or snapshot is None:
            return None
        ordinal = self.number("device")
        if ordinal is None:
            ordinal = rank_of_writer(self.writer, spec.placement)
        gpus = spec.placement.gpus
        if ordinal is None and len(gpus) == 1:
            ordinal = 0
        # A process counts the cards that are visible to it, which stand in rank order.
        return snapshot.box.gpu(gpus[ordinal]) if ordinal is not None and ordinal < len(gpus) else None


@dataclass(frozen=True, slots=True)
class Entry:
    """`meaning` and `fix` are the general words; `explain` refines them by the line, the spec and the box."""

    id: str
    title: str
    signs: tuple[Sign, ...]
    meaning: str
    fix: str
    source: str  # who writes these texts
    explain: Callable[[Found], Advice] | None = None
    notice: bool = False  # worth knowing, and no reason to end
    covers: tuple[str, ...] = ()  # entries that say less of the same failure

    def search(self, text: str) -> re.Match[str] | None:
        for each in self.signs:
            if each.literal in text and (found := each.pattern.search(text)):
                return found
        return None
