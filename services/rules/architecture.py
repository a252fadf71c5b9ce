"""What the cards' compute capabilities allow.

vLLM asks only the first visible card (vllm/platforms/cuda.py get_device_capability(device_id=0)); every card is checked
here.
"""

from collections.abc import Iterator

from gpudeck.services.box.types import ComputeCapability, Gpu
from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.extra import extra_value
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.rules.regroup import lowest_first, regrouped
from gpudeck.services.rules.rule import ModelPlan, Plan, Rule, listed, named

FLOOR = Rule(
    "capability-floor",
    Severity.ERROR,
    "A card older than vLLM's kernels",
    "The published wheel holds kernels from compute capability 7.5 on; older cards end in `no kernel image`.",
    "vLLM 0.20 and later, CUDA 13 wheels; vllm#39878",
)
TP_MIXED = Rule(
    "tp-mixed-architecture",
    Severity.WARNING,
    "Mixed architectures in one TP group",
    "All ranks of a TP group run the same kernels, chosen by the first visible card, and wait for the slowest at every "
    "layer. 8.6 with 8.9 is known to work; 12.0 with older cards has failed (illegal memory access, fp8 kernels).",
    "vllm#14452, #15576; vllm/platforms/cuda.py",
)
PP_MIXED = Rule(
    "pp-mixed-architecture",
    Severity.WARNING,
    "Mixed architectures across stages",
    "Backends, quantization kernels and dtype are still chosen once, by the first visible card; each stage runs at its "
    "own cards' speed and the slowest sets the pace.",
    "vllm/platforms/cuda.py; vllm#7958",
)
FIRST_CARD = Rule(
    "first-card-decides",
    Severity.WARNING,
    "The first card is newer than another",
    "vLLM chooses attention backend and kernels by the first visible card; a backend that only that card supports "
    "fails on the others.",
    "vllm/platforms/cuda.py get_device_capability(device_id=0); vllm#54758",
)
FLASH_ATTENTION = Rule(
    "attention-backend-first-card",
    Severity.ERROR,
    "FlashAttention on a card below 8.0",
    "With a first card of 8.0 or newer vLLM picks FLASH_ATTN and bfloat16 for all ranks; both need 8.0 on each card.",
    "vllm/platforms/cuda.py; vllm#54758",
)
BF16 = Rule(
    "bf16-capability",
    Severity.ERROR,
    "bfloat16 below 8.0",
    "Cards below compute capability 8.0 have no bfloat16.",
    "vllm/platforms/cuda.py check_if_supports_dtype: Bfloat16 is only supported on GPUs with compute capability of at "
    "least 8.0",
)
BF16_FALLBACK = Rule(
    "bf16-as-fp16",
    Severity.INFO,
    "bfloat16 weights run as float16",
    "With dtype auto vLLM takes float16 where the card has no bfloat16; large activations may overflow.",
    "vllm/config/model.py _resolve_auto_dtype",
)
QUANTIZATION = Rule(
    "quantization-capability",
    Severity.ERROR,
    "A quantization that the card can not run",
    "Each method has a least compute capability. vLLM checks the first card only; the others die in the kernel.",
    "vllm/model_executor/layers/quantization/*.py get_min_capability: The quantization method X is not supported for "
    "the current GPU",
)
FP8_WEIGHT_ONLY = Rule(
    "fp8-weight-only",
    Severity.INFO,
    "fp8 weights without fp8 arithmetic",
    "Below 8.9 fp8 weights run through Marlin: memory is saved, compute is not.",
    "vllm/model_executor/layers/quantization/fp8.py",
)
KV_FP8 = Rule(
    "kv-cache-fp8-capability",
    Severity.ERROR,
    "An fp8 KV cache that the card can not run",
    "An fp8 KV cache needs FlashInfer (8.0 to 12.1), FlashAttention 3 (9.x) or Triton on 8.9 and later.",
    "vllm/v1/attention/backends",
)
KV_FP8_FLASHINFER = Rule(
    "kv-cache-fp8-flashinfer",
    Severity.WARNING,
    "An fp8 KV cache that needs FlashInfer",
    "From 8.0 to 8.6 only FlashInfer serves an fp8 KV cache; it must be installed beside vLLM.",
    "vllm/v1/attention/backends",
)

RULES = (
    FLOOR,
    TP_MIXED,
    PP_MIXED,
    FIRST_CARD,
    FLASH_ATTENTION,
    BF16,
    BF16_FALLBACK,
    QUANTIZATION,
    FP8_WEIGHT_ONLY,
    KV_FP8,
    KV_FP8_FLASHINFER,
)
_8_0 = ComputeCapability(8, 0)
_8_9 = ComputeCapability(8, 9)
_FLOOR = ComputeCapability(7, 5)

# Least compute capability of each quantization method, times ten.
LEAST_CAPABILITY = {
    "awq": 75, "awq_marlin": 75, "auto_awq": 75, "gptq": 60, "gptq_marlin": 75, "auto_gptq": 60,
    "fp8": 75, "int8": 75, "mxfp8": 75, "nvfp4": 75, "online": 75,
    "fp8_per_tensor": 75, "fp8_per_block": 75, "fp8_per_channel": 75, "int8_per_channel_weight_only": 75,
    "nvfp4_per_token": 75, "deepseek_v4_fp8": 75, "fbgemm_fp8": 80, "fp_quant": 100,
    "modelopt": 80, "modelopt_fp4": 75, "modelopt_mxfp8": 80, "modelopt_mixed": 75,
    "mxfp4": 80, "gpt_oss_mxfp4": 80, "experts_int8": 80, "moe_wna16": 70, "quark": 70,
    "torchao": 75, "humming": 75, "inc": 60, "auto-round": 60, "compressed-tensors": 70,
}  # fmt: skip


# What compressed-tensors' schemes need beyond that (their get_min_capability); W8A8-FP8 falls back to weight-only.
_LEAST_OF_SCHEME = {"MXFP4": 80, "W4A8-FP8": 90}


def check_cards(plan: Plan) -> Iterator[Finding]:
    """What can be told without a model."""
    old = [gpu for gpu in plan.gpus if gpu.compute_capability < _FLOOR]
    if old:
        yield FLOOR.finding(
            f"{_with_capability(old)}: vLLM's kernels begin at 7.5 and would end in `no kernel image`.",
            "Take the card out of the placement, or use a vLLM that was built for it.",
        )
    mixed = False
    for place, stage in enumerate(plan.spec.placement.stages):
        gpus = plan.stage_gpus(stage)
        if len({gpu.compute_capability for gpu in gpus}) > 1:
            mixed = True
            alike = _alike(plan, gpus)
            where = f"Stage {place}" if len(plan.spec.placement.stages) > 1 else "The TP group"
            yield TP_MIXED.finding(
                f"{where} mixes {_with_capability(list(gpus))}: every layer waits for the slowest card, kernels are "
                "chosen by the first, and the smallest memory counts for all.",
                _separate(alike),
                regrouped(plan, place, alike) if alike is not None and len(alike) == len(stage) else None,
            )
    pipeline = None if mixed else _mixed_pipeline(plan)
    if pipeline is not None:
        yield PP_MIXED.finding(
            f"The stages mix {_with_capability(list(pipeline))}: kernels and dtype are chosen by the first card for "
            "all, and the slowest stage sets the pace."
        )
    yield from _first_card(plan)


def _mixed_pipeline(plan: Plan) -> tuple[Gpu, ...] | None:
    """The cards of the first copy whose stages are of several capabilities; copies do not wait for each other."""
    stages = plan.spec.placement.stages
    for first in range(0, len(stages), max(plan.stages, 1)):
        copy = stages[first : first + max(plan.stages, 1)]
        gpus = tuple(gpu for stage in copy for gpu in plan.stage_gpus(stage))
        if len({gpu.compute_capability for gpu in gpus}) > 1:
            return gpus
    return None


def check(judged: ModelPlan) -> Iterator[Finding]:
    yield from _bf16(judged)
    yield from _quantization(judged)
    yield from _kv_cache(judged)


def _first_card(plan: Plan) -> Iterator[Finding]:
    if len(plan.gpus) < 2 or extra_value(plan.spec.options.extra, "--attention-backend") is not None:
        return
    first = plan.gpus[0]
    lowest = min(plan.gpus, key=lambda gpu: gpu.compute_capability)
    if first.compute_capability <= lowest.compute_capability:
        return
    change = lowest_first(plan)
    better = f"List {named(lowest)} first"
    if change is not None and change.placement is not None:
        stages = " ".join(f"--stage {','.join(map(str, stage))}" for stage in change.placement.stages)
        better = f"{better} ({stages})"
    fix = f"{better}, or pass --attention-backend TRITON_ATTN, which runs on every card."
    if lowest.compute_capability < _8_0 <= first.compute_capability:
        yield FLASH_ATTENTION.finding(
            f"{named(first)} is the first visible card ({first.compute_capability}), so vLLM picks FLASH_ATTN for all "
            f"ranks; {named(lowest)} has {lowest.compute_capability} and FlashAttention needs 8.0.",
            fix,
            change,
        )
        return
    yield FIRST_CARD.finding(
        f"{named(first)} is the first visible card ({first.compute_capability}) and vLLM chooses kernels by it; "
        f"{named(lowest)} has {lowest.compute_capability}.",
        fix,
        change,
    )


def _bf16(judged: ModelPlan) -> Iterator[Finding]:
    old = [gpu for gpu in judged.plan.gpus if _FLOOR <= gpu.compute_capability < _8_0]
    if not old:
        return
    dtype = judged.plan.spec.options.dtype or "auto"
    if dtype == "bfloat16":
        yield BF16.finding(
            f"--dtype bfloat16 needs compute capability 8.0; {_with_capability(old)}.",
            "Use --dtype float16.",
            options_change(dtype="float16"),
        )
    elif dtype == "auto" and judged.model.dtype == "bfloat16" and judged.plan.gpus[0].compute_capability < _8_0:
        yield BF16_FALLBACK.finding(
            f"The model is bfloat16, which {_with_capability(old)} can not run: vLLM takes float16 instead.",
            "Pass --dtype float16 to make the choice visible.",
            options_change(dtype="float16"),
        )


def _quantization(judged: ModelPlan) -> Iterator[Finding]:
    method = judged.plan.spec.options.quantization or judged.model.quantization
    least = LEAST_CAPABILITY.get(method or "")
    scheme = judged.model.quantization_scheme
    if scheme is not None and least is not None and method == judged.model.quantization:
        method, least = f"{method} {scheme}", max(least, _LEAST_OF_SCHEME.get(scheme, 0))
    if method is None or least is None:
        return
    needed = ComputeCapability(*divmod(least, 10))
    old = [gpu for gpu in judged.plan.gpus if _FLOOR <= gpu.compute_capability < needed]
    if old:
        yield QUANTIZATION.finding(
            f"The quantization method {method} needs compute capability {needed}; {_with_capability(old)}.",
            "Use cards from that capability on, or a checkpoint with another quantization.",
        )
    elif method in ("fp8", "fbgemm_fp8") or scheme == "W8A8-FP8":
        slow = [gpu for gpu in judged.plan.gpus if gpu.compute_capability < _8_9]
        if slow:
            yield FP8_WEIGHT_ONLY.finding(f"fp8 weights run weight-only (Marlin) below 8.9: {_with_capability(slow)}.")


def _kv_cache(judged: ModelPlan) -> Iterator[Finding]:
    if not (judged.plan.spec.options.kv_cache_dtype or "auto").startswith("fp8"):
        return
    old = [gpu for gpu in judged.plan.gpus if _FLOOR <= gpu.compute_capability < _8_0]
    middle = [gpu for gpu in judged.plan.gpus if _8_0 <= gpu.compute_capability < _8_9]
    if old:
        yield KV_FP8.finding(
            f"An fp8 KV cache needs compute capability 8.0; {_with_capability(old)}.",
            "Leave --kv-cache-dtype out.",
            options_change(kv_cache_dtype=None),
        )
    elif middle:
        yield KV_FP8_FLASHINFER.finding(
            f"Only FlashInfer serves an fp8 KV cache below 8.9: {_with_capability(middle)}.",
            "See that FlashInfer is installed beside vLLM, or leave --kv-cache-dtype out.",
            options_change(kv_cache_dtype=None),
        )


def _with_capability(gpus: list[Gpu]) -> str:
    return listed([f"{named(gpu)} {gpu.compute_capability}" for gpu in gpus[:4]])


def _alike(plan: Plan, gpus: tuple[Gpu, ...]) -> tuple[int, ...] | None:
    """As many cards of one capability, where the box has them."""
    kinds: dict[ComputeCapability, list[Gpu]] = {}
    for gpu in plan.box.gpus:
        kinds.setdefault(gpu.compute_capability, []).append(gpu)
    return next(
        (tuple(gpu.index for gpu in alike[: len(gpus)]) for alike in kinds.values() if len(alike) >= len(gpus)), None
    )


def _separate(alike: tuple[int, ...] | None) -> str:
    """The way out of a mixed group: cards of one kind where the box has enough, else one card a stage."""
    if alike is not None:
        return f"Put cards of one kind together: {listed([f'GPU {card}' for card in alike])}."
    return "Give each card a stage of its own (pipeline parallelism), or use the cards of one kind only."
