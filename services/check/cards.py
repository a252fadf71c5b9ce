"""Whether every card of a placement did its part while an engine answered."""

from collections.abc import Sequence

from gpudeck.services.box.types import GIB, GpuProcess, Reading, Snapshot
from gpudeck.services.check.types import Item, Outcome
from gpudeck.services.plan.types import EngineSpec, Placement

_BUSY_PERCENT = 5  # above what the card had before: a desktop, or another engine's work
_SOMEONES = 512 << 20  # bytes: more than a driver keeps for itself
_UNEVEN = 1.15  # the fullest stage over the emptiest

Place = tuple[int, int, int]  # copy, stage, rank within the stage


def places(placement: Placement) -> dict[int, Place]:
    """Where each card stands, by its index; of a card that stands twice, the last place."""
    stages = max(placement.pipeline_parallel_size, 1)
    return {
        gpu: (number // stages, number % stages, rank)
        for number, cards in enumerate(placement.stages)
        for rank, gpu in enumerate(cards)
    }


def card_items(spec: EngineSpec, before: Snapshot | None, during: Sequence[Snapshot]) -> tuple[Item, ...]:
    """One line for work, one for workers, and one for uneven memory over stages where there are several.

    `before` was read before the first prompt, `during` while prompts were answered; without any, why is told elsewhere.
    """
    if not during:
        return ()
    return (
        _busy(spec.placement, before, during),
        _workers(spec, during[-1]),
        *_memory(spec.placement, during[-1]),
    )


def _busy(placement: Placement, before: Snapshot | None, during: Sequence[Snapshot]) -> Item:
    title = "every card was busy meanwhile"
    idle, unknown, seen = [], [], []
    for gpu in placement.gpus:
        told = [
            reading.utilization_percent
            for snapshot in during
            if (reading := snapshot.reading(gpu)) is not None and reading.utilization_percent is not None
        ]
        at_rest = before.reading(gpu) if before is not None else None
        rest = (at_rest.utilization_percent or 0) if at_rest is not None else 0
        if not told:
            unknown.append(gpu)
            continue
        seen.append(f"GPU {gpu} {max(told)} %")
        if max(told) < min(rest + _BUSY_PERCENT, 100):
            idle.append(f"GPU {gpu} (at most {max(told)} %, {rest} % before)")
    if idle:
        return Item(
            "cards-busy",
            title,
            Outcome.FAILED,
            f"{', '.join(idle)} did nothing while the engine answered: is its rank on another card? "
            "gpudeck box names the process on each.",
        )
    if unknown:
        return Item("cards-busy", title, Outcome.SKIPPED, f"the driver tells no utilisation of {_gpus(unknown)}")
    return Item("cards-busy", title, Outcome.PASSED, ", ".join(seen))


def _workers(spec: EngineSpec, now: Snapshot) -> Item:
    title = "every card holds its worker"
    wanted = places(spec.placement)
    empty: list[str] = []
    wrong: list[str] = []
    hidden: list[str] = []
    for gpu, place in wanted.items():
        reading = now.reading(gpu)
        if reading is None:
            empty.append(f"GPU {gpu} (the box has no such card)")
            continue
        own = [process for process in reading.processes if process.engine == spec.name]
        if not own:
            (hidden if _hides(reading) else empty).append(f"GPU {gpu}")
        elif (mismatch := _mismatch(own, place)) is not None:
            wrong.append(f"GPU {gpu} holds {mismatch}")
    if empty or wrong:
        missing = f"no process of {spec.name} on {', '.join(empty)}" if empty else ""
        return Item("cards-workers", title, Outcome.FAILED, "; ".join(filter(None, (missing, *wrong))))
    if hidden:
        return Item("cards-workers", title, Outcome.SKIPPED, f"the driver does not tell who is on {', '.join(hidden)}")
    return Item("cards-workers", title, Outcome.PASSED, f"{_gpus(list(wanted))}, each with the rank of its place")


def _hides(reading: Reading) -> bool:
    """Whether processes may be there that can not be told apart: under WSL, another user's, those of a container.

    In a container the driver often lists none at all, while memory is in use.
    """
    if not reading.processes:
        return reading.processes_hidden or (reading.memory_used_bytes or 0) > _SOMEONES
    return any(process.engine is None for process in reading.processes)


def _mismatch(own: Sequence[GpuProcess], place: Place) -> str | None:
    """What stands on the card in place of the rank that the placement puts there; None where that is as planned.

    A process that tells no rank (one card alone has none in its title) is believed.
    """
    found = [(process.dp_rank, process.pp_rank, process.tp_rank) for process in own]
    for ranks in found:
        if all(rank is None or rank == wanted for rank, wanted in zip(ranks, place, strict=True)):
            return None
    copy, stage, rank = found[0]
    words = (("copy", copy, place[0]), ("stage", stage, place[1]), ("rank", rank, place[2]))
    return ", ".join(f"{word} {there} where {wanted} was planned" for word, there, wanted in words if there != wanted)


def _memory(placement: Placement, now: Snapshot) -> tuple[Item, ...]:
    """Uneven memory over stages, which makes owners wonder, and why it is as it should be."""
    if placement.pipeline_parallel_size < 2:
        return ()
    used = {gpu: reading.memory_used_bytes for gpu in placement.gpus if (reading := now.reading(gpu)) is not None}
    told = {gpu: amount for gpu, amount in used.items() if amount}
    if len(told) < 2 or max(told.values()) < _UNEVEN * min(told.values()):
        return ()
    amounts = ", ".join(f"GPU {gpu} {amount / GIB:.1f} GiB" for gpu, amount in told.items())
    return (
        Item(
            "cards-memory",
            "memory over the stages",
            Outcome.NOTE,
            f"{amounts}: uneven memory over pipeline stages is normal. Stages hold different layers, the first and "
            "last also embedding and head, and each card gives its own share to the KV cache.",
        ),
    )


def _gpus(cards: Sequence[int]) -> str:
    return f"GPU {', '.join(map(str, cards))}"
