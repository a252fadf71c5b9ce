"""Cards of different memory in one engine, and what that costs."""

from collections.abc import Iterator

from gpudeck.services.box.types import GIB, Gpu
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.rules.rule import Plan, Rule, gib, named

TP_MEMORY = Rule(
    "tp-mixed-memory",
    Severity.WARNING,
    "Mixed memory in one TP group",
    "Every rank of a TP group holds an equal share of weights and KV cache, and gpu-memory-utilization is one number "
    "for all: what a larger card has beyond the smallest is not used.",
    "vllm#9157, #9465, #2317, #10204",
)
PP_MEMORY = Rule(
    "pp-mixed-memory",
    Severity.INFO,
    "Mixed memory across stages",
    "vLLM splits the layers evenly; VLLM_PP_LAYER_PARTITION gives stages with larger cards more of them.",
    "vllm#6824, #21061; vllm/distributed/utils.py get_pp_indices",
)
RULES = (TP_MEMORY, PP_MEMORY)
_FROM = GIB  # cards of one kind differ by less


def check(plan: Plan) -> Iterator[Finding]:
    smallest: dict[int, list[Gpu]] = {}  # of each stage, by copy: only the stages of one copy share its layers
    for place, stage in enumerate(plan.spec.placement.stages):
        cards = plan.stage_gpus(tuple(dict.fromkeys(stage)))
        if not cards:
            continue
        least = min(cards, key=lambda gpu: gpu.memory_bytes)
        smallest.setdefault(place // max(plan.stages, 1), []).append(least)
        unused = sum(gpu.memory_bytes - least.memory_bytes for gpu in cards)
        if len(cards) > 1 and max(gpu.memory_bytes for gpu in cards) - least.memory_bytes >= _FROM:
            yield TP_MEMORY.finding(
                f"In stage {place} {named(least)} has {gib(least.memory_bytes)}, and {gib(unused)} of the larger cards "
                "stay unused.",
                "Put cards of one size into each stage: pipeline stages may differ (a layer partition).",
            )
    if plan.stages < 2 or plan.spec.layer_partition is not None:
        return
    for gpus in smallest.values():
        least, most = (choose(gpus, key=lambda gpu: gpu.memory_bytes) for choose in (min, max))
        if most.memory_bytes - least.memory_bytes >= _FROM:
            yield PP_MEMORY.finding(
                f"The stages' cards have from {gib(least.memory_bytes)} to {gib(most.memory_bytes)}, and the layers "
                "are split evenly.",
                "Give --layer-partition, or leave --stage out: proposals compute it.",
            )
            return
