"""Results for tests: one box, one model, placements that differ."""

from dataclasses import replace

from gpudeck.services.bench.types import (
    CardFacts,
    CardUse,
    Generator,
    Level,
    Limits,
    QueueTime,
    Result,
    Spread,
    Target,
    Workload,
)
from gpudeck.services.plan.types import EngineSpec, Placement

GIB = 1 << 30
CARDS = (
    CardFacts(0, "NVIDIA GeForce RTX 4090 D", 24 * GIB),
    CardFacts(1, "NVIDIA A100-SXM4-40GB", 40 * GIB),
    CardFacts(2, "NVIDIA A100-SXM4-40GB", 40 * GIB),
)
WORKLOAD = Workload(concurrency=(1, 16))


def spread(seconds: float) -> Spread:
    return Spread(seconds, seconds, seconds * 1.2, seconds * 1.3, seconds * 1.5)


def level(
    at: float, *, first: float, each: float, watts: float | None = 300.0, estimated: float | None = None
) -> Level:
    """A level of `at` requests at once in which everything was answered."""
    seconds = 3 * (first + 127 * each)
    return Level(
        at, 48, 48, {}, seconds, 48 * 512, 48 * 128, spread(first), spread(each), spread(each), spread(seconds / 3),
        QueueTime(0.01, 0.4, 0.3), (CardUse(1, 90.0, 60.0, 30 * GIB, watts), CardUse(2, 80.0, 60.0, 30 * GIB, watts)),
        estimated,
    )  # fmt: skip


def result(name: str, *stages: tuple[int, ...], first: float = 0.1, each: float = 0.02, at: int = 12) -> Result:
    spec = EngineSpec(name, "/models/gemma-3-27b", Placement(stages))
    layers = (32,) if len(stages) == 1 else (16, 16)
    return Result(
        id=f"20261201-{at}0000-{name}",
        at=f"2026-12-01T{at}:00:00+00:00",
        targets=(Target(name, "http://127.0.0.1:8000", "gemma", "0.32.0", spec, layers),),
        workload=WORKLOAD,
        limits=Limits(),
        levels=(level(1, first=first, each=each, estimated=60.0), level(16, first=first * 2, each=each * 2)),
        box="deep, driver 580.95.05",
        cards=CARDS,
        notes=("a note",),
    )


def by_vllm(one: Result) -> Result:
    return replace(one, workload=replace(one.workload, generator=Generator.VLLM))
