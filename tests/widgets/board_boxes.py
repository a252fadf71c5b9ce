"""Boxes and a judge for the widgets' tests."""

from gpudeck.services.box.types import GIB, Box, ComputeCapability, Gpu, GpuProcess, Link, Pcie, Reading, Snapshot
from gpudeck.services.plan.findings import Finding, GpuMemory, Judgement, MemoryPlan, Severity
from gpudeck.services.plan.types import Placement

AMPERE, ADA = ComputeCapability(8, 0), ComputeCapability(8, 9)

MIXED = Box(
    (
        Gpu(0, "NVIDIA GeForce RTX 4090 D", 24 * GIB, ADA, pcie=Pcie(gen=4, width=16), power_limit_w=425.0),
        Gpu(1, "NVIDIA A100-SXM4-40GB", 40 * GIB, AMPERE, power_limit_w=400.0),
        Gpu(2, "NVIDIA A100-SXM4-40GB", 40 * GIB, AMPERE, power_limit_w=400.0),
    ),
    (Link(1, 2, "NV12"),),
)


def uniform(count: int) -> Box:
    links = tuple(Link(a, b, "NV18") for a in range(count) for b in range(a + 1, count))
    return Box(tuple(Gpu(index, "NVIDIA H200", 140 * GIB, ComputeCapability(9, 0)) for index in range(count)), links)


def judge(placement: Placement) -> Judgement:
    """Blocks stages of unequal size, cautions more than one stage, and tells tokens by the number of cards."""
    findings: list[Finding] = []
    if not placement.uniform:
        findings.append(Finding("uniform-tp", Severity.ERROR, "Stages differ in size.", "Give each the same number."))
    if len(placement.stages) > 1:
        findings.append(Finding("pipeline", Severity.WARNING, "Stages wait for each other."))
    count = len(placement.gpus)
    if not count:
        return Judgement((Finding("no-card", Severity.ERROR, "No card is placed."),))
    parts = tuple(GpuMemory(gpu, 8 * GIB, 10 * GIB, 2 * GIB, 0, 4 * GIB) for gpu in placement.gpus)
    layers = tuple(32 // len(placement.stages) for _ in placement.stages)
    return Judgement(tuple(findings), MemoryPlan(parts, 11_000 * count, 1.5 * count, 8192), layers)


def snapshot(box: Box, *, at: float = 1.0, utilization: int = 61, **changes: object) -> Snapshot:
    """A reading of every card, the same but for its process; `changes` are fields of card 0's."""
    readings = []
    for gpu in box.gpus:
        fields: dict[str, object] = {
            "utilization_percent": utilization,
            "memory_used_bytes": int(14.2 * GIB),
            "temperature_c": 71,
            "power_w": 312.0,
            "processes": (GpuProcess(100 + gpu.index, "python3", int(13.9 * GIB), None, "gemma", gpu.index, 0),),
        }
        if gpu.index == 0:
            fields |= changes
        readings.append(Reading(gpu.index, **fields))  # type: ignore[arg-type]
    return Snapshot(box, at, tuple(readings))
