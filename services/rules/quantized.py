"""Whether quantized weights can be cut into this many shards."""

from collections.abc import Iterator

from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.extra import has_option
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.rules.parallel import one_card_a_stage, tensor_sizes
from gpudeck.services.rules.parallel_options import EXPERT_OPTIONS
from gpudeck.services.rules.rule import ModelPlan, Rule, listed

SHARDS = Rule(
    "quantized-shards",
    Severity.ERROR,
    "Quantized weights that do not divide by TP",
    "Scales belong to blocks or groups of weights, and a rank's shard must hold whole ones: block_n and block_k for "
    "block-wise fp8, group_size for GPTQ, AWQ and compressed-tensors.  It is found only in the workers, while loading.",
    "vllm/model_executor/layers/quantization/utils/fp8_utils.py: Weight input_size_per_partition = … is not divisible "
    "by weight quantization block_k; marlin_utils.py verify_group_size_divides_partition",
)
PADDED = Rule(
    "quantized-padded",
    Severity.INFO,
    "Quantized shards that are padded",
    "Marlin works in tiles of 64 × 128 (min_thread_n, min_thread_k); shards that hold no whole number of them are "
    "padded at every step, and before vLLM padded them they were refused.",
    "vllm/model_executor/layers/quantization/utils/marlin_utils.py marlin_padded_nk, verify_marlin_supports_shape",
)
RULES = (SHARDS, PADDED)
_MARLIN = ("awq", "awq_marlin", "auto_awq", "gptq", "gptq_marlin", "auto_gptq")
_TILE_N, _TILE_K = 64, 128


def check(judged: ModelPlan) -> Iterator[Finding]:
    model, ranks = judged.model, judged.plan.tensor_parallel
    if ranks < 2 or model.quantization is None:
        return
    whole = any(has_option(judged.plan.spec.options.extra, option) for option in EXPERT_OPTIONS)
    broken = _broken(model, ranks, whole_experts=whole)
    if broken is not None:
        fitting = [
            size
            for size in tensor_sizes(
                model.attention_heads, None if model.mla else model.kv_heads, model.vocab_size, ranks - 1
            )
            if size == 1 or _broken(model, size, whole_experts=whole) is None
        ]
        sizes = listed([str(size) for size in fitting]).replace(" and ", " or ")
        change = one_card_a_stage(judged)
        pipeline = f", or one card a stage (PP {len(judged.plan.gpus)})" if change is not None else ""
        yield SHARDS.finding(f"{broken} at tensor parallel size {ranks}.", f"Use TP {sizes}{pipeline}.", change)
        return
    if model.quantization not in _MARLIN or model.experts is not None:
        return
    width = model.intermediate_size
    if width % ranks == 0 and (width // ranks) % _TILE_N:
        yield PADDED.finding(
            f"At TP {ranks} a rank holds {width // ranks} of the MLP's {width} columns, no multiple of {_TILE_N}: "
            "Marlin pads them at every step."
        )


def _broken(model: ModelFacts, ranks: int, *, whole_experts: bool) -> str | None:
    """Which weights a shard would hold no whole blocks or groups of; None where all divide."""
    width = model.experts.intermediate_size if model.experts is not None else model.intermediate_size
    cut = [] if model.experts is not None and whole_experts else [("MLP", width)]
    inputs = [*cut, ("attention output", model.attention_heads * _value_dim(model))]
    if model.quantization_block is not None:
        block_n, block_k = model.quantization_block
        outputs = list(cut)
        if model.mla is None and model.kv_heads >= ranks:
            outputs.append(("K and V projection", model.kv_heads * model.head_dim))
        for name, size in outputs:
            if size % ranks == 0 and (size // ranks) % block_n:
                return f"The {name}'s output of {size} gives {size // ranks} a rank, no multiple of block_n {block_n},"
        for name, size in inputs:
            if size % ranks == 0 and (size // ranks) % block_k:
                return f"The {name}'s input of {size} gives {size // ranks} a rank, no multiple of block_k {block_k},"
    group = model.quantization_group
    if group is not None and group > 0:
        for name, size in inputs:
            if group < size and size % ranks == 0 and (size // ranks) % group:
                return f"The {name}'s input of {size} gives {size // ranks} a rank, no multiple of group_size {group},"
    return None


def _value_dim(model: ModelFacts) -> int:
    return model.mla.v_head_dim if model.mla is not None else model.head_dim
