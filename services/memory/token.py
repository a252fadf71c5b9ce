"""What one token takes in the KV cache, as arithmetic that can be read."""

from gpudeck.services.memory.kv_cache import layer_token_bytes
from gpudeck.services.memory.settings import Settings
from gpudeck.services.models.types import ModelFacts

_UNITS = ((1 << 20, "MiB"), (1 << 10, "KiB"))


def token_arithmetic(model: ModelFacts, settings: Settings, times: str = "×") -> str:
    """`2 × 8 KV heads × 128 × 2 B × 32 layers = 128 KiB a token`, over all cards of one copy.

    Layers with a sliding window keep its tokens only, those with a fixed state none: both are told, not counted.  ""
    where no layer keeps a cache.
    """
    kinds = [model.kind(layer) for layer in range(model.layers)]
    full, sliding = kinds.count("full"), kinds.count("sliding")
    counted = full or sliding
    if not counted:
        return ""
    size = f"{settings.kv_cache_bytes} B"
    each = layer_token_bytes(model, settings, 1)
    if each != _plain(model, settings):
        # Packed with its scales: no product of whole bytes.
        entry = f"{each} B ({settings.kv_cache_dtype})"
    elif model.mla is not None:
        entry = f"({model.mla.kv_lora_rank} + {model.mla.qk_rope_head_dim}) {times} {size}"
    else:
        entry = times.join(
            ("2 ", f" {model.kv_heads} KV head{'' if model.kv_heads == 1 else 's'} ", f" {model.head_dim} ", f" {size}")
        )
    layers = f"{counted} {'full ' if full and sliding else ''}layer{'' if counted == 1 else 's'}"
    total = each * counted
    words = f"{entry} {times} {layers} = {_in_words(total)} a token"
    if sliding and model.sliding_window is not None:
        which = f"{sliding} sliding layers keep" if full else "they keep"
        words += f"; {which} {model.sliding_window:,} tokens at most"
    return words


def _plain(model: ModelFacts, settings: Settings) -> int:
    if model.mla is not None:
        return (model.mla.kv_lora_rank + model.mla.qk_rope_head_dim) * settings.kv_cache_bytes
    return 2 * model.kv_heads * model.head_dim * settings.kv_cache_bytes


def _in_words(size: int) -> str:
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} B"
