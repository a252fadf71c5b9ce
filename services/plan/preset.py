"""The cautious options of a first start: small enough that a plan that fits at all comes up and shows that it works."""

from dataclasses import replace

from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.types import EngineOptions

MAX_MODEL_LEN = 8192
GPU_MEMORY_UTILIZATION = 0.85
MAX_NUM_SEQS = 32
MAX_NUM_BATCHED_TOKENS = 8192


def cautious(options: EngineOptions, model: ModelFacts) -> EngineOptions:
    """The options with the four that decide memory set low; a model's own length is kept where it is smaller."""
    own = model.max_position_embeddings
    return replace(
        options,
        max_model_len=MAX_MODEL_LEN if own is None else min(own, MAX_MODEL_LEN),
        gpu_memory_utilization=GPU_MEMORY_UTILIZATION,
        max_num_seqs=MAX_NUM_SEQS,
        max_num_batched_tokens=MAX_NUM_BATCHED_TOKENS,
    )


def is_cautious(options: EngineOptions, model: ModelFacts) -> bool:
    return options == cautious(options, model)


def stepped_up(options: EngineOptions) -> EngineOptions:
    """The options with those four left to vLLM."""
    return replace(
        options, max_model_len=None, gpu_memory_utilization=None, max_num_seqs=None, max_num_batched_tokens=None
    )
