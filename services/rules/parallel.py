"""Whether the model divides into this many ranks and stages."""

from collections.abc import Iterator

from gpudeck.services.memory.partition import default_partition
from gpudeck.services.models.parameters import VOCABULARY_PADDING
from gpudeck.services.plan.changes import Change
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.types import Placement
from gpudeck.services.rules.rule import ModelPlan, Rule, listed

HEADS = Rule(
    "heads-divisible",
    Severity.ERROR,
    "Attention heads that do not divide by TP",
    "Each rank takes the same number of attention heads.",
    "vllm/config/model.py verify_with_parallel_config: Total number of attention heads (H) must be divisible by tensor "
    "parallel size (T).",
)
KV_HEADS = Rule(
    "kv-heads-divisible",
    Severity.ERROR,
    "KV heads that do not divide by TP",
    "With at least as many KV heads as ranks each rank takes the same number; with fewer, each head is copied to the "
    "same number of ranks. vLLM checks it only in the workers, which die with an empty AssertionError.",
    "vllm/model_executor/models/llama.py LlamaAttention",
)
KV_HEADS_COPIED = Rule(
    "kv-heads-copied",
    Severity.INFO,
    "KV heads that are copied",
    "Beyond one rank for each KV head, the KV cache no longer shrinks with TP.",
    "vllm/model_executor/models/llama.py LlamaAttention",
)
VOCABULARY = Rule(
    "vocabulary-divisible",
    Severity.ERROR,
    "A vocabulary that does not divide by TP",
    "The embedding is padded to a multiple of 64 rows and split over the ranks.",
    "vllm/model_executor/layers/vocab_parallel_embedding.py",
)
INTERMEDIATE = Rule(
    "intermediate-divisible",
    Severity.ERROR,
    "An MLP that does not divide by TP",
    "The MLP's columns are split evenly over the ranks.",
    "vllm/distributed/utils.py ensure_divisibility: A is not divisible by B",
)
LAYERS = Rule(
    "pp-layers",
    Severity.ERROR,
    "More stages than layers",
    "Each pipeline stage needs at least one layer.",
    "vllm/distributed/utils.py get_pp_indices",
)
PIPELINE = Rule(
    "pp-unsupported",
    Severity.ERROR,
    "A model without pipeline parallelism",
    "The model's class does not implement vLLM's SupportsPP interface.",
    "vllm/config/model.py: Pipeline parallelism is not supported for this model.",
)
PARTITION = Rule(
    "layer-partition",
    Severity.ERROR,
    "A layer partition that does not fit",
    "VLLM_PP_LAYER_PARTITION gives each stage its number of layers; vLLM checks count and sum in the workers, and lets "
    "entries of 0 and below pass.",
    "vllm/distributed/utils.py get_pp_indices: len(partitions) does not match pp_size; sum(partitions) does not match "
    "num_hidden_layers",
)

RULES = (HEADS, KV_HEADS, KV_HEADS_COPIED, VOCABULARY, INTERMEDIATE, LAYERS, PIPELINE, PARTITION)


def check(judged: ModelPlan) -> Iterator[Finding]:
    yield from _tensor(judged)
    yield from _pipeline(judged)


def _tensor(judged: ModelPlan) -> Iterator[Finding]:
    model, ranks = judged.model, judged.plan.tensor_parallel
    if ranks < 2:
        return
    if model.attention_heads % ranks:
        yield HEADS.finding(
            f"Total number of attention heads ({model.attention_heads}) must be divisible by tensor parallel size "
            f"({ranks}).",
            _other_sizes(judged),
            one_card_a_stage(judged),
        )
    elif model.mla is None and not _kv_heads_fit(model.kv_heads, ranks):
        yield KV_HEADS.finding(
            f"{model.kv_heads} KV heads neither divide by tensor parallel size {ranks} nor are a divisor of it.",
            _other_sizes(judged),
            one_card_a_stage(judged),
        )
    elif model.mla is None and model.kv_heads < ranks:
        yield KV_HEADS_COPIED.finding(
            f"The {model.kv_heads} KV heads are copied to {ranks // model.kv_heads} ranks each: beyond TP "
            f"{model.kv_heads} a card holds no less KV cache."
        )
    padded = -(-model.vocab_size // VOCABULARY_PADDING) * VOCABULARY_PADDING
    if padded % ranks:
        yield VOCABULARY.finding(
            f"The vocabulary of {model.vocab_size} tokens, padded to {padded}, does not divide by tensor parallel size "
            f"{ranks}.",
            _other_sizes(judged),
            one_card_a_stage(judged),
        )
    if model.experts is None and model.intermediate_size % ranks:
        yield INTERMEDIATE.finding(
            f"The MLP's intermediate size ({model.intermediate_size}) does not divide by tensor parallel size {ranks}.",
            _other_sizes(judged),
            one_card_a_stage(judged),
        )


def _pipeline(judged: ModelPlan) -> Iterator[Finding]:
    model, stages = judged.model, judged.plan.stages
    if stages > model.layers:
        yield LAYERS.finding(
            f"{stages} pipeline stages are more than the model's {model.layers} layers.",
            f"Use at most {model.layers} stages.",
        )
    if stages > 1 and not model.supports_pipeline:
        yield PIPELINE.finding(
            f"Pipeline parallelism is not supported for {model.architecture}.",
            "Put all cards into one stage.",
            _one_stage(judged),
        )
    partition = judged.plan.spec.layer_partition
    if partition is None or stages < 1:
        return
    shown = ",".join(str(layers) for layers in partition)
    default = ",".join(str(layers) for layers in default_partition(model.layers, stages))
    change = Change(layer_partition=default_partition(model.layers, stages)) if stages <= model.layers else None
    fix = f"Use {default}, vLLM's own split, or another one with {stages} entries that add up to {model.layers}."
    if len(partition) != stages:
        yield PARTITION.finding(
            f"The layer partition {shown} has {len(partition)} entries for {stages} stages.", fix, change
        )
    elif min(partition) < 1:
        yield PARTITION.finding(f"The layer partition {shown} leaves a stage without a layer.", fix, change)
    elif sum(partition) != model.layers:
        yield PARTITION.finding(
            f"The layer partition {shown} adds up to {sum(partition)}, but the model has {model.layers} layers.",
            fix,
            change,
        )


def _one_stage(judged: ModelPlan) -> Change | None:
    """All cards as one TP group, where the model divides by their number."""
    model, placement = judged.model, judged.plan.spec.placement
    kv_heads = None if model.mla is not None else model.kv_heads
    cards = tuple(dict.fromkeys(placement.gpus))
    if placement.replicas != 1:
        return None
    if len(cards) not in tensor_sizes(model.attention_heads, kv_heads, model.vocab_size, len(cards)):
        return None
    return Change(placement=Placement((cards,)))


def _kv_heads_fit(kv_heads: int, ranks: int) -> bool:
    return kv_heads % ranks == 0 if kv_heads >= ranks else ranks % kv_heads == 0


def one_card_a_stage(judged: ModelPlan) -> Change | None:
    """The same cards as a pipeline without TP; None where that would not run either."""
    placement, model = judged.plan.spec.placement, judged.model
    cards = tuple(gpu.index for gpu in judged.plan.gpus)
    if placement.replicas != 1 or not model.supports_pipeline or not 1 < len(cards) <= model.layers:
        return None
    return Change(placement=Placement(tuple((card,) for card in cards)))


def tensor_sizes(heads: int, kv_heads: int | None, vocabulary: int, most: int) -> list[int]:
    """The TP sizes up to `most` that divide heads, KV heads (None: MLA, which has none to divide) and vocabulary."""
    padded = -(-vocabulary // VOCABULARY_PADDING) * VOCABULARY_PADDING
    return [
        ranks
        for ranks in range(1, most + 1)
        if heads % ranks == 0 and (kv_heads is None or _kv_heads_fit(kv_heads, ranks)) and padded % ranks == 0
    ]


def _other_sizes(judged: ModelPlan) -> str:
    model = judged.model
    kv_heads = None if model.mla is not None else model.kv_heads
    sizes = tensor_sizes(model.attention_heads, kv_heads, model.vocab_size, len(judged.plan.box.gpus))
    pipeline = f", or one card a stage (PP {len(judged.plan.gpus)})" if one_card_a_stage(judged) is not None else ""
    return f"Use a tensor parallel size of {listed([str(size) for size in sizes]).replace(' and ', ' or ')}{pipeline}."
