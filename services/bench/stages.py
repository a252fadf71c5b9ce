"""Which pipeline stage the others wait for, and which layer split would even that out."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpudeck.services.bench.types import CardUse, Level, Result

_EVEN = 0.05  # waiting below this share of the time is no more than noise
_LEAST_BUSY = 5.0  # percent: below this the load says nothing about the stages


@dataclass(frozen=True, slots=True)
class StageBalance:
    """`busy` is each stage's share of the slowest stage's work time, 1 for that one."""

    slowest: int
    busy: tuple[float, ...]
    layers: tuple[int, ...]
    better: tuple[int, ...] | None  # the split that evens it out; None where this one does
    gain: float  # of the pace with `better`, as a factor
    by_memory: bool  # told by how long memory was read or written; else by utilisation, which counts waiting too

    def sentence(self) -> str:
        """What an operator is told."""
        if self.better is None:
            return "No stage waits long for another: the layer split is even."
        waits = ", ".join(
            f"stage {stage} waits {1 - share:.0%} of the time"
            for stage, share in enumerate(self.busy)
            if stage != self.slowest and 1 - share >= _EVEN
        )
        split = ",".join(map(str, self.better))
        caveat = (
            ""
            if self.by_memory
            else "  These cards do not tell how busy their memory is, and waiting for another stage counts as "
            "utilisation, so that the true waits are longer."
        )
        return (
            f"The others wait for stage {self.slowest}: {waits}.  --layer-partition {split} in place of "
            f"{','.join(map(str, self.layers))} would even that out, by about {self.gain - 1:.0%}; gpudeck plan says "
            f"whether it fits.{caveat}"
        )


def stage_balance(
    stages: Sequence[Sequence[int]], layers: Sequence[int], cards: Sequence[CardUse]
) -> StageBalance | None:
    """The balance of one copy's stages by what their cards did; None where that can not be told.

    In the steady state each stage works once a period, which is as long as the slowest one's work; so the share of the
    time in which a stage works is its work over the slowest stage's.  NCCL spins while it waits, which NVML counts as
    utilisation but which touches little memory: where all cards tell it, memory activity stands for work.
    """
    if len(stages) < 2 or len(layers) != len(stages) or any(count < 1 for count in layers):
        return None
    by_card = {use.gpu: use for use in cards}
    uses = [[by_card[gpu] for gpu in stage if gpu in by_card] for stage in stages]
    if any(len(use) != len(stage) or not use for use, stage in zip(uses, stages, strict=True)):
        return None
    by_memory = all(use.memory_busy for stage in uses for use in stage)
    shares = []
    for stage in uses:
        told = [use.memory_busy if by_memory else use.utilization for use in stage]
        if any(value is None for value in told):
            return None
        # Within a stage the ranks wait for the slowest of them.
        shares.append(max(value for value in told if value is not None))
    most = max(shares)
    if most < _LEAST_BUSY or min(shares) <= 0:
        return None
    busy = tuple(share / most for share in shares)
    better = _evened(busy, layers) if min(busy) <= 1 - _EVEN else None
    if better is None or better == tuple(layers):
        return StageBalance(shares.index(most), busy, tuple(layers), None, 1.0, by_memory)
    pace = max(share / count * new for share, count, new in zip(busy, layers, better, strict=True))
    return StageBalance(shares.index(most), busy, tuple(layers), better, 1 / pace, by_memory)


def _evened(busy: Sequence[float], layers: Sequence[int]) -> tuple[int, ...]:
    """The whole numbers of layers whose slowest stage is fastest, each stage with its own time a layer."""
    each = [share / count for share, count in zip(busy, layers, strict=True)]
    split = [1] * len(layers)
    for _ in range(sum(layers) - len(layers)):
        # The next layer goes where it makes the least long stage: greedy is exact for a maximum of linear times.  Of
        # two that are as good, the one that moves fewer layers.
        place = min(
            range(len(split)),
            key=lambda stage: (round((split[stage] + 1) * each[stage], 9), split[stage] + 1 - layers[stage]),
        )
        split[place] += 1
    return tuple(split)


def balance_of(result: Result) -> StageBalance | None:
    """The balance under the greatest load of a run; None where it has no stages, or nothing is known of them."""
    if len(result.targets) != 1 or result.targets[0].spec is None:
        return None
    target = result.targets[0]
    assert target.spec is not None
    placement = target.spec.placement
    stages = placement.stages[: placement.pipeline_parallel_size]
    loaded = [level for level in result.levels if level.completed]
    busiest: Level | None = max(loaded, key=lambda level: level.level, default=None)
    return stage_balance(stages, target.layers, busiest.cards) if busiest is not None else None
