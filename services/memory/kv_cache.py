"""The KV cache: bytes per token, how layers share blocks, and how many tokens fit.

Source: vllm/v1/core/kv_cache_utils.py (groups of equal page size, one block count for all ranks), checked against real
runs on an H200.
"""

from dataclasses import dataclass

from gpudeck.services.memory.settings import Settings
from gpudeck.services.models.types import ModelFacts

# DeepSeek V3.2 and later: 512 fp8 elements with four scales and 64 rotary elements in 16 bits; and beside each entry
# its index's key of 128 fp8 elements with one scale (vllm/v1/attention/backends/mla/indexer.py).
_SPARSE_FP8_ENTRY = 656
_INDEX_ENTRY = 132


def layer_token_bytes(model: ModelFacts, settings: Settings, tensor_parallel: int) -> int:
    """Bytes that one token takes in one layer's cache on one rank.

    MLA keeps one compressed entry for all heads and does not divide it; else each rank keeps K and V of its own KV
    heads, at least one.
    """
    if model.mla is not None:
        index = _INDEX_ENTRY if model.mla.indexed else 0
        if settings.kv_cache_dtype == "fp8_ds_mla" or (model.mla.indexed and settings.kv_cache_dtype.startswith("fp8")):
            return _SPARSE_FP8_ENTRY + index
        return (model.mla.kv_lora_rank + model.mla.qk_rope_head_dim) * settings.kv_cache_bytes + index
    heads = max(1, model.kv_heads // max(tensor_parallel, 1))
    return 2 * heads * vector_bytes(settings, model.head_dim)


def vector_bytes(settings: Settings, width: int) -> int:
    """Bytes of one head's K or V of one token (vllm/v1/kv_cache_interface.py, triton_attn.py, torch_utils.py)."""
    dtype = settings.kv_cache_dtype
    if dtype.startswith("nvfp4"):
        return width // 2 + width // 16  # an 8-bit scale for 16 elements
    if dtype.endswith("_per_token_head"):
        return (width // 2 if dtype.startswith("int4") else width) + 4  # a 32-bit scale
    return width * settings.kv_cache_bytes


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """Layers that share one block table; `window` is None for full attention."""

    layers: tuple[int, ...]
    window: int | None


def cache_groups(model: ModelFacts) -> tuple[CacheGroup, ...]:
    """How vLLM groups the layers that keep a cache.

    All of one kind: one group.  Else groups of as many layers as the rarer kind has (as the other has, where they
    differ by less than half), each taking every n-th layer of its kind so that stages share them evenly.
    """
    full = [layer for layer in range(model.layers) if model.kind(layer) == "full"]
    sliding = [layer for layer in range(model.layers) if model.kind(layer) == "sliding"]
    kinds = [(layers, window) for layers, window in ((full, None), (sliding, model.sliding_window)) if layers]
    if len(kinds) < 2:
        return tuple(CacheGroup(tuple(layers), window) for layers, window in kinds)
    least, most = sorted((len(full), len(sliding)))
    size = most if most < least * 1.5 else least
    groups = []
    for layers, window in kinds:
        count = -(-len(layers) // size)
        groups += [CacheGroup(tuple(layers[start::count]), window) for start in range(count)]
    return tuple(groups)


def largest_share(groups: tuple[CacheGroup, ...], first_layer: int, end_layer: int) -> int:
    """The layers that the stage's fullest group has on it: a block takes that many pages there."""
    return max((sum(first_layer <= layer < end_layer for layer in group.layers) for group in groups), default=0)


def blocks_needed(groups: tuple[CacheGroup, ...], length: int, in_flight: int, block: int) -> int:
    """Blocks that one request of `length` tokens takes, while up to `in_flight` tokens are computed at once."""
    needed = 0
    for group in groups:
        if group.window is None:
            needed += -(-length // block)
        else:
            needed += -(-min(group.window - 1 + in_flight, length) // block) + 1
    return needed


def longest_request(groups: tuple[CacheGroup, ...], blocks: int, in_flight: int, block: int, limit: int) -> int:
    """The largest length up to `limit` that fits into `blocks`; 0 where not even one token does."""
    if blocks_needed(groups, limit, in_flight, block) <= blocks:
        return limit
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        if blocks_needed(groups, middle, in_flight, block) <= blocks:
            low = middle
        else:
            high = middle
    return low
