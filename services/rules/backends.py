"""Which attention backend each card would take by itself, and whether the one that is forced runs on all."""

from collections.abc import Iterator

from gpudeck.services.box.types import ComputeCapability, Gpu
from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.extra import extra_value, without_options
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.rules.rule import ModelPlan, Rule, listed, named

MIXED = Rule(
    "attention-backend-mixed",
    Severity.INFO,
    "Cards of one group that would take different attention backends",
    "vLLM chooses one backend by the first visible card for all ranks; another card then runs one that is not its "
    "best, or not made for it.",
    "vllm/platforms/cuda.py; vllm/v1/attention/backends",
)
FORCED = Rule(
    "attention-backend-capability",
    Severity.ERROR,
    "A forced attention backend that a card can not run",
    "Each backend has a range of compute capabilities: FLASH_ATTN from 8.0, FLASHINFER 8.0 to 12.1, FlashMLA 9 and 10, "
    "FlashAttention's MLA 9, CUTLASS's MLA 10; the Triton ones run on every card.",
    "vllm/v1/attention/backends (0.32) supports_compute_capability",
)
RULES = (MIXED, FORCED)
_OPTION = "--attention-backend"
# Least and greatest compute capability of what --attention-backend names; a greatest of 99 stands for none.
_RANGES = {
    "FLASH_ATTN": (ComputeCapability(8, 0), ComputeCapability(99, 0)),
    "FLASHINFER": (ComputeCapability(8, 0), ComputeCapability(12, 1)),
    "FLASHMLA": (ComputeCapability(9, 0), ComputeCapability(10, 9)),
    "FLASH_ATTN_MLA": (ComputeCapability(9, 0), ComputeCapability(9, 9)),
    "CUTLASS_MLA": (ComputeCapability(10, 0), ComputeCapability(10, 9)),
}


def check(judged: ModelPlan) -> Iterator[Finding]:
    plan = judged.plan
    forced = extra_value(plan.spec.options.extra, _OPTION)
    if forced is not None:
        yield from _forced(judged, forced.upper())
        return
    for place, stage in enumerate(plan.spec.placement.stages):
        taken: dict[str, list[str]] = {}
        for gpu in plan.stage_gpus(stage):
            taken.setdefault(_by_itself(gpu, latent=judged.model.mla is not None), []).append(f"GPU {gpu.index}")
        if len(taken) > 1:
            told = "; ".join(f"{listed(cards)} {backend}" for backend, cards in taken.items())
            yield MIXED.finding(
                f"By themselves the cards of stage {place} would take different attention backends ({told}); one is "
                "chosen for all.",
                f"{_OPTION} {'TRITON_MLA' if judged.model.mla is not None else 'TRITON_ATTN'} runs on every card.",
            )


def _by_itself(gpu: Gpu, *, latent: bool) -> str:
    major = gpu.compute_capability.major
    if latent:
        return {9: "FLASH_ATTN_MLA", 10: "CUTLASS_MLA"}.get(major, "TRITON_MLA")
    if major < 8:
        return "TRITON_ATTN"
    return {9: "FlashAttention 3", 10: "FLASHINFER"}.get(major, "FlashAttention 2")


def _forced(judged: ModelPlan, backend: str) -> Iterator[Finding]:
    if backend not in _RANGES:
        return
    least, most = _RANGES[backend]
    outside = [gpu for gpu in judged.plan.gpus if not least <= gpu.compute_capability <= most]
    if outside:
        extra = without_options(judged.plan.spec.options.extra, {_OPTION})
        triton = "TRITON_MLA" if judged.model.mla is not None else "TRITON_ATTN"
        yield FORCED.finding(
            f"{_OPTION} {backend} does not run on "
            f"{listed([f'{named(gpu)} ({gpu.compute_capability})' for gpu in outside])}.",
            f"Use {_OPTION} {triton}, which runs on every card.",
            options_change(extra=(*extra, _OPTION, triton)),
        )
