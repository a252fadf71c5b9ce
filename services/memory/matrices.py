"""The large matrices of a rank as vLLM holds them: which are fused, and how wide each is there."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpudeck.services.models.parameters import VOCABULARY_PADDING
from gpudeck.services.models.types import ModelFacts


@dataclass(frozen=True, slots=True)
class Matrix:
    """`elements` on this rank, of which there are `count`; `linear` ones are what online quantization shrinks."""

    elements: int
    count: int
    linear: bool = True


def rank_matrices(model: ModelFacts, layers: int, tensor_parallel: int, *, embeddings: int) -> Iterator[Matrix]:
    """The matrices of `layers` layers and of `embeddings` vocabulary tables (vllm/model_executor/models/llama.py)."""
    hidden, ranks = model.hidden_size, tensor_parallel
    heads = model.attention_heads / ranks
    if model.mla is None:
        kv_heads = max(1.0, model.kv_heads / ranks)
        yield Matrix(int(hidden * (heads + 2 * kv_heads) * model.head_dim), layers)
        yield Matrix(int(hidden * heads * model.head_dim), layers)
    else:
        query = model.mla.qk_nope_head_dim + model.mla.qk_rope_head_dim
        yield Matrix(int((model.mla.q_lora_rank or hidden) * heads * query), layers)
        yield Matrix(int(hidden * heads * model.mla.v_head_dim), layers)
    gates = 2 if model.gated_mlp else 1
    if model.experts is not None:
        routed = model.experts.count * hidden * model.experts.intermediate_size / ranks
        shared = hidden * model.experts.shared_intermediate_size / ranks
        for size in (routed, shared):
            yield Matrix(int(gates * size), layers)
            yield Matrix(int(size), layers)
    else:
        size = hidden * model.intermediate_size / ranks
        yield Matrix(int(gates * size), layers)
        yield Matrix(int(size), layers)
    padded = -(-model.vocab_size // VOCABULARY_PADDING) * VOCABULARY_PADDING
    yield Matrix(int(padded * hidden / ranks), embeddings, linear=False)


def rounding(matrices: Iterator[Matrix], dtype_bytes: int, linear_bytes: float) -> int:
    """What the allocator takes beyond these matrices.

    vLLM loads weights under max_split_size_mb:20 (vllm/v1/worker/gpu_worker.py load_model): torch then makes blocks
    from 20 MiB on in steps of 2 MiB and never splits them.  Of a smaller block the rest stays unused only where it is
    1 MiB at most (c10/cuda/CUDACachingAllocator.cpp should_split).
    """
    total = 0
    for matrix in matrices:
        size = int(matrix.elements * (linear_bytes if matrix.linear else dtype_bytes))
        rest = -size % _STEP
        if size >= _UNSPLIT or (size >= _OWN_BLOCK and rest <= _SPLIT_FROM):
            total += rest * matrix.count
    return total


_STEP = 2 << 20
_OWN_BLOCK = 10 << 20
_UNSPLIT = 20 << 20
_SPLIT_FROM = 1 << 20
