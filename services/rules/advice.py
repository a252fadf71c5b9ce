"""What experience says, with its reason: no plan fails by it."""

from collections.abc import Iterator

from gpudeck.services.box.types import GIB, ComputeCapability
from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.extra import has_option, without_options
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.rules.rule import ModelPlan, Plan, Rule, gib, listed, named
from gpudeck.services.text import printable

PRODUCTION = Rule(
    "capability-below-production",
    Severity.INFO,
    "Cards below compute capability 8.0",
    "They have no bfloat16 and no FlashAttention, and are the next that vLLM's wheels will leave out.",
    "vllm/platforms/cuda.py; vLLM 0.20, which left 7.0 out (vllm#39878)",
)
SMALL = Rule(
    "card-small",
    Severity.INFO,
    "A card below 16 GB",
    "CUDA's context, activations and graphs take one to three GiB whatever the model is; little is left for weights "
    "and KV cache.",
    "docs/memory.md",
)
ECC = Rule(
    "ecc-off",
    Severity.INFO,
    "Memory without error correction",
    "A flipped bit in a weight or in the KV cache changes answers and tells nobody.",
    "NVIDIA GPU memory error management",
)
HEADROOM = Rule(
    "headroom",
    Severity.INFO,
    "Less than a tenth of the card kept free",
    "Allocator leftovers, a longer prompt than any before and a second context need room: 10 to 15 % keeps a server "
    "that runs for weeks from running out of memory.",
    "run on an H200 (vLLM 0.24): up to 0.6 GiB above the budget; vllm/config/cache.py (its default is 0.92)",
)
QUANTIZE = Rule(
    "quantize-large",
    Severity.INFO,
    "A large model in 16 bits",
    "Above 13 billion parameters 4-bit or 8-bit weights free memory for context, or whole cards, at little loss.",
    "vLLM documentation, quantization",
)
PREFIX = Rule(
    "prefix-caching-off",
    Severity.INFO,
    "Prefix caching is switched off",
    "With it a prompt that begins like an earlier one is not computed again; it costs next to nothing in V1.",
    "vLLM V1 guide: automatic prefix caching",
)
CHUNKED = Rule(
    "chunked-prefill-off",
    Severity.INFO,
    "Chunked prefill is switched off",
    "With it a long prompt does not hold up the answers that are being written.",
    "vLLM documentation, optimization: chunked prefill",
)
OTHERS = Rule(
    "other-accelerators",
    Severity.INFO,
    "Accelerators of another maker",
    "One engine runs on one platform: vLLM's CUDA build sees NVIDIA cards only, and no group spans makers.",
    "vllm/platforms/__init__.py: one current_platform a process",
)
RULES = (PRODUCTION, SMALL, ECC, HEADROOM, QUANTIZE, PREFIX, CHUNKED, OTHERS)
_PRODUCTION_FROM = ComputeCapability(8, 0)
_WITH_KERNELS = ComputeCapability(7, 5)
_SMALL_BELOW = 14 * GIB  # cards that are sold with 16 GB tell 15 GiB and more
_DEFAULT_SHARE = 0.92
_LARGE = 13e9
_PREFIX_OFF, _CHUNKED_OFF = "--no-enable-prefix-caching", "--no-enable-chunked-prefill"


def check_box(plan: Plan) -> Iterator[Finding]:
    """What needs no model."""
    old = [gpu for gpu in plan.gpus if _WITH_KERNELS <= gpu.compute_capability < _PRODUCTION_FROM]
    if old:
        yield PRODUCTION.finding(
            f"For production take cards of capability 8.0 and up: "
            f"{listed([f'{named(gpu)} has {gpu.compute_capability}' for gpu in old])}."
        )
    small = [gpu for gpu in plan.gpus if gpu.memory_bytes < _SMALL_BELOW]
    if small:
        yield SMALL.finding(f"{listed([f'{named(gpu)} has {gib(gpu.memory_bytes)}' for gpu in small])}.")
    bare = {
        reading.gpu: reading.ecc.enabled
        for reading in plan.around.readings
        if reading.ecc is not None and not reading.ecc.enabled
    }
    without = [gpu for gpu in plan.gpus if gpu.index in bare]
    if without:
        can = [gpu for gpu in without if bare[gpu.index] is False]
        cards = ",".join(str(gpu.index) for gpu in can)
        yield ECC.finding(
            f"{listed([named(gpu) for gpu in without])}: no error correction.",
            f"Switch it on where the card has it: nvidia-smi -i {cards} -e 1, then reset it." if can else None,
        )
    if plan.box.accelerators:
        others = listed([printable(other.title) for other in plan.box.accelerators])
        yield OTHERS.finding(f"vLLM's CUDA build leaves {others} alone.")
    yield from _switched_off(plan)


def check(judged: ModelPlan) -> Iterator[Finding]:
    share = judged.plan.spec.options.gpu_memory_utilization
    if share is not None and _DEFAULT_SHARE < share <= 1:
        yield HEADROOM.finding(
            f"gpu-memory-utilization {share:g} keeps {1 - share:.0%} of the card free.",
            "Use --gpu-memory-utilization 0.9.",
            options_change(gpu_memory_utilization=0.9),
        )
    yield from _quantize(judged)


def _quantize(judged: ModelPlan) -> Iterator[Finding]:
    model, memory = judged.model, judged.memory
    asked = judged.plan.spec.options.quantization
    if memory is None or model.quantization or asked or (model.parameters or 0) <= _LARGE:
        return
    limit = model.max_position_embeddings
    short = limit is not None and memory.longest < limit
    if len(judged.plan.gpus) > 1 or short:
        buys = "a longer context" if short else "cards"
        full, quarter = (model.parameters or 0) * 2, (model.parameters or 0) * 0.56
        yield QUANTIZE.finding(
            f"{(model.parameters or 0) / 1e9:.0f} billion parameters take {gib(full)} in 16 bits and about "
            f"{gib(quarter)} in 4: a quantized checkpoint buys {buys}."
        )


def _switched_off(plan: Plan) -> Iterator[Finding]:
    extra = plan.spec.options.extra
    for option, rule, what in (
        (_PREFIX_OFF, PREFIX, "Prefix caching"),
        (_CHUNKED_OFF, CHUNKED, "Chunked prefill"),
    ):
        if has_option(extra, option):
            yield rule.finding(
                f"{what} is switched off.",
                f"Take {option} out.",
                options_change(extra=without_options(extra, {option})),
            )
