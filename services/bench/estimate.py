"""What the plan had promised, for the very load that was measured."""

from collections.abc import Sequence

from gpudeck.services.bench.types import Workload
from gpudeck.services.box.types import Box
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.estimate import decode_speeds
from gpudeck.services.plan.findings import MemoryPlan
from gpudeck.services.plan.links import link_table
from gpudeck.services.plan.types import EngineSpec


def request_speed(
    box: Box, model: ModelFacts, spec: EngineSpec, memory: MemoryPlan, workload: Workload, together: float
) -> float | None:
    """Tokens a second of one request after its first, with `together` requests at once over all copies.

    Each has the prompt and half of its answer behind it, which is the mean.  None where nothing can be told.
    """
    length = workload.input_tokens + workload.output_tokens // 2
    speeds = decode_speeds(
        box, model, spec, memory, link_table(box), load=(max(together / spec.placement.replicas, 1.0), length)
    )
    if speeds is None:
        return None
    return speeds.single if together <= spec.placement.replicas else speeds.together / together


def estimates(
    box: Box, model: ModelFacts, spec: EngineSpec, memory: MemoryPlan, workload: Workload, engines: int
) -> dict[float, float]:
    """By the levels of a closed loop, split over so many engines alike; an open loop has no fixed number at once."""
    levels: Sequence[float] = () if workload.open_loop else workload.levels
    told = {level: request_speed(box, model, spec, memory, workload, max(level / engines, 1.0)) for level in levels}
    return {level: round(speed, 2) for level, speed in told.items() if speed is not None}
