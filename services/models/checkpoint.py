"""Placing a checkpoint's tensors: which layer each belongs to, and what tensor parallelism does with it."""

import re
from collections.abc import Iterable

from gpudeck.services.models.parameters import Shape
from gpudeck.services.models.quantization import SCALE_COPIES
from gpudeck.services.models.safetensors import FLOATS, Tensor
from gpudeck.services.models.types import LayerWeights, WeightLayout, Weights

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block|layer)\.(\d{1,6})\.")
_ENCODER = re.compile(
    r"(?:^|\.)(?:visual|vision\w*|audio\w*|image_newline|multi_modal_projector|mm_projector|aligner)\."
)
_DRAFT = re.compile(r"(?:^|\.)mtp\.")
_EMBEDDING = re.compile(r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|tok_embeddings|embed_in|embeddings)\.")
_POSITIONS = re.compile(r"(?:^|\.)(?:wpe|embed_positions|position_embeddings)\.")
_HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output)\.")
_KV = re.compile(r"\.(?:k_proj|v_proj|wk|wv)\.")
_FUSED_QKV = re.compile(r"\.(?:qkv_proj|query_key_value|c_attn|W_pack|Wqkv|qkv)\.")
_COPIED = re.compile(r"\.(?:\w*norm\w*|ln_\w+|router|gate|q_a_proj|kv_a_proj_with_mqa|fused_qkv_a_proj|sinks)(?:\.|$)")
_SCALE = re.compile(r"\.(?:scales|qzeros)$|scale(?:_inv|_2)?$|zero_point$|absmax$")


def lay_out(tensors: Iterable[Tensor], shape: Shape) -> WeightLayout:
    """The layout of these tensors.

    What predicts several tokens (DeepSeek's layers beyond the model's own, Qwen3-Next's mtp) is left out: vLLM loads it
    only on request.
    """
    layers = [LayerWeights()] * shape.layers
    embedding = head = first = last = Weights()
    for tensor in tensors:
        weights = _weights(tensor)
        if _DRAFT.search(tensor.name):
            continue
        if _ENCODER.search(tensor.name):
            first += weights
        elif match := _LAYER.search(tensor.name):
            layer = int(match.group(1))
            if layer < shape.layers:
                layers[layer] += _in_layer(tensor, weights, shape)
        elif _POSITIONS.search(tensor.name):
            first += weights
        elif _EMBEDDING.search(tensor.name):
            embedding += weights
        elif _HEAD.search(tensor.name):
            if not shape.tied:
                head += weights
        else:
            last += weights
    return WeightLayout(tuple(layers), embedding, head, first, last)


def total_bytes(layout: WeightLayout, dtype_bytes: int) -> int:
    """All weights at once, as a single card would hold them."""
    total = layout.embedding + layout.lm_head + layout.first_whole + layout.last_whole
    for layer in layout.layers:
        total += layer.split + layer.kv + layer.whole
    return total.bytes(dtype_bytes)


def _weights(tensor: Tensor) -> Weights:
    if tensor.name.endswith(".scales"):
        return Weights(packed=tensor.bytes * SCALE_COPIES)
    if tensor.dtype in FLOATS and not _SCALE.search(tensor.name):
        return Weights(elements=tensor.elements)
    return Weights(packed=tensor.bytes)


def _in_layer(tensor: Tensor, weights: Weights, shape: Shape) -> LayerWeights:
    if _COPIED.search(tensor.name) or (len(tensor.shape) < 2 and not _SCALE.search(tensor.name)):
        return LayerWeights(whole=weights)
    if _KV.search(tensor.name):
        return LayerWeights(kv=weights)
    if _FUSED_QKV.search(tensor.name):
        heads = shape.attention_heads + 2 * shape.kv_heads
        kv = Weights(weights.elements * 2 * shape.kv_heads // heads, weights.packed * 2 * shape.kv_heads // heads)
        rest = Weights(weights.elements - kv.elements, weights.packed - kv.packed)
        return LayerWeights(split=rest, kv=kv)
    return LayerWeights(split=weights)
