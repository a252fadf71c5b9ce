"""What verdicts rest on beside box, model and plan, learned once and kept; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from gpudeck.services.box.types import MIB, Reading, Snapshot

_STEP = 256 * MIB  # memory in use moves all the time, and a verdict does not
_NONE: Mapping[str, int | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Grounds:
    """What is not known yet is not judged."""

    readings: tuple[Reading, ...] = ()  # of each card only what lasts: faults, MIG, ECC, rows, modes, who holds it
    tokenizers: Mapping[str, int | None] = field(default_factory=lambda: _NONE)  # tokens, by what --tokenizer names
    keyed: frozenset[str] = frozenset()  # engines that have an API key

    def with_tokenizer(self, name: str, tokens: int | None) -> "Grounds":
        return replace(self, tokenizers={**self.tokenizers, name: tokens})

    def with_key(self, engine: str, *, is_set: bool) -> "Grounds":
        return replace(self, keyed=self.keyed | {engine} if is_set else self.keyed - {engine})

    def with_snapshot(self, snapshot: Snapshot) -> "Grounds":
        """With what the cards say of themselves; what was not read this time is as it was."""
        before = {reading.gpu: reading for reading in self.readings}
        readings = tuple(_lasting(reading, before.get(reading.gpu)) for reading in snapshot.readings)
        return self if readings == self.readings else replace(self, readings=readings)


def _lasting(now: Reading, before: Reading | None) -> Reading:
    ecc, rows, modes = now.ecc, now.rows, now.modes
    if before is not None:
        ecc, rows, modes = ecc or before.ecc, rows or before.rows, modes or before.modes
    processes = tuple(
        replace(process, memory_bytes=(process.memory_bytes or 0) // _STEP * _STEP) for process in now.processes
    )
    return Reading(
        now.gpu, fault=now.fault, mig_enabled=now.mig_enabled, ecc=ecc, rows=rows, modes=modes, processes=processes
    )
