"""From a .gguf header to a model's facts."""

import re
from pathlib import Path
from typing import Any

from gpudeck.services.models.config import MAX_LAYERS, MAX_WIDTH
from gpudeck.services.models.fields import Fields, ModelError, shown
from gpudeck.services.models.gguf_header import GgufHeader, GgufTensor
from gpudeck.services.models.gguf_parts import first_part, model_stem, read_parts
from gpudeck.services.models.types import Experts, LayerWeights, Mla, ModelFacts, WeightLayout, Weights

# general.architecture to the class that vLLM runs for it.
_CLASSES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen2moe": "Qwen2MoeForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3moe": "Qwen3MoeForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3": "Gemma3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "deepseek2": "DeepseekV2ForCausalLM",
    "gpt-oss": "GptOssForCausalLM",
    "gpt2": "GPT2LMHeadModel",
    "falcon": "FalconForCausalLM",
}
_BLOCK = re.compile(r"blk\.(\d{1,6})\.(.+)")


def facts_from_gguf(path: Path) -> ModelFacts:
    """The facts in a .gguf file's header, or in those of all parts of a split one.

    Raises ModelError naming the file and the key.
    """
    path = first_part(path)
    header = read_parts(path)
    family = header.values.get("general.architecture")
    if not isinstance(family, str) or not family or shown(family) != family:
        raise ModelError(f"{shown(path)} lacks a general.architecture that can be read: convert or download it again.")
    fields = Fields(_numbers(header, family), shown(path), f"{shown(family[:40])}.")
    layers = fields.whole("block_count")
    if layers > MAX_LAYERS:
        raise fields.wrong("block_count", f"at most {MAX_LAYERS}")
    hidden = _width(fields, "embedding_length")
    heads = _width(fields, "attention.head_count")
    head_dim = _width(fields, "attention.key_length", default=max(hidden // heads, 1))
    kv_heads = _width(fields, "attention.head_count_kv", default=heads)
    names = {tensor.name for tensor in header.tensors}
    vocabulary = header.lengths.get("tokenizer.ggml.tokens") or fields.maybe_whole("vocab_size")
    if vocabulary is None:
        vocabulary = next((max(t.shape) for t in header.tensors if t.name == "token_embd.weight" and t.shape), None)
    if vocabulary is None:
        raise ModelError(f"{shown(path)} names no vocabulary (tokenizer.ggml.tokens): convert or download it again.")
    layout = _lay_out(header.tensors, layers, heads, kv_heads)
    bare = next((number for number, layer in enumerate(layout.layers) if layer == LayerWeights()), None)
    if bare is not None:
        raise ModelError(
            f"{shown(path)} holds no tensor of layer {bare} of {layers} (block_count): it is no whole model; download "
            "it again."
        )
    window = fields.maybe_whole("attention.sliding_window", least=0) or None
    kinds = _layer_kinds(family, layers, window)
    guesses = ["which .gguf layers vLLM's plugin keeps quantized is assumed: all that are in the file"]
    if family not in _CLASSES:
        guesses.append(f"the family {family} is unknown")
    return ModelFacts(
        name=model_stem(path),
        path=str(path),
        architecture=_CLASSES.get(family, family),
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate_size=_width(fields, "feed_forward_length", default=4 * hidden),
        vocab_size=vocabulary,
        max_position_embeddings=fields.maybe_whole("context_length"),
        dtype="float16",
        tied_embeddings="output.weight" not in names,
        quantization="gguf",
        weight_bytes=sum(tensor.bytes for tensor in header.tensors),
        parameters=sum(tensor.elements for tensor in header.tensors),
        guesses=tuple(guesses),
        model_type=family,
        layer_kinds=kinds,
        sliding_window=window if kinds else None,
        mla=_mla(fields),
        experts=_experts(fields),
        rope_cache_elements=(fields.maybe_whole("context_length") or 0) * head_dim,
        weights=layout,
    )


def _numbers(header: GgufHeader, family: str) -> dict[str, Any]:
    """The family's own keys without their prefix; of a list (one figure for each layer) the largest."""
    prefix = f"{family}."
    found: dict[str, Any] = {}
    for key, value in header.values.items():
        if not key.startswith(prefix):
            continue
        numbers = [entry for entry in value if isinstance(entry, int)] if isinstance(value, tuple) else value
        found[key.removeprefix(prefix)] = max(numbers, default=None) if isinstance(numbers, list) else numbers
    return found


def _width(fields: Fields, name: str, default: int | None = None) -> int:
    value = fields.whole(name, default=default)
    if value > MAX_WIDTH:
        raise fields.wrong(name, f"at most {MAX_WIDTH}")
    return value


def _mla(fields: Fields) -> Mla | None:
    rank = fields.maybe_whole("attention.kv_lora_rank")
    if rank is None:
        return None
    rope = _width(fields, "rope.dimension_count", default=64)
    key = _width(fields, "attention.key_length_mla", default=_width(fields, "attention.key_length", default=192))
    value = _width(fields, "attention.value_length_mla", default=_width(fields, "attention.value_length", default=128))
    return Mla(rank, rope, max(key - rope, 1), value, fields.maybe_whole("attention.q_lora_rank"))


def _experts(fields: Fields) -> Experts | None:
    count = fields.maybe_whole("expert_count", least=0)
    if not count:
        return None
    size = _width(fields, "expert_feed_forward_length", default=fields.maybe_whole("feed_forward_length"))
    shared = fields.whole("expert_shared_count", default=0, least=0) * size
    return Experts(count, fields.whole("expert_used_count", default=1), size, shared)


def _layer_kinds(family: str, layers: int, window: int | None) -> tuple[str, ...]:
    if window is None or family not in ("gemma2", "gemma3", "gpt-oss", "phi3"):
        return ()
    full = {"gemma3": 6, "phi3": 0}.get(family, 2)
    return tuple("sliding" if not full or (layer + 1) % full else "full" for layer in range(layers))


def _lay_out(tensors: tuple[GgufTensor, ...], layers: int, heads: int, kv_heads: int) -> WeightLayout:
    by_layer = [LayerWeights()] * layers
    embedding = head = last = Weights()
    for tensor in tensors:
        weights = Weights(packed=tensor.bytes)
        block = _BLOCK.fullmatch(tensor.name)
        if block is not None:
            layer = int(block.group(1))
            if layer < layers:
                by_layer[layer] += _in_layer(block.group(2), tensor, weights, heads, kv_heads)
        elif tensor.name.startswith("token_embd."):
            embedding += weights
        elif tensor.name.startswith("output."):
            head += weights
        else:
            last += weights
    return WeightLayout(tuple(by_layer), embedding, head, Weights(), last)


def _in_layer(part: str, tensor: GgufTensor, weights: Weights, heads: int, kv_heads: int) -> LayerWeights:
    if len(tensor.shape) < 2 or part.startswith(("ffn_gate_inp", "attn_q_a", "attn_kv_a")):
        return LayerWeights(whole=weights)
    if part.startswith(("attn_k.", "attn_v.")):
        return LayerWeights(kv=weights)
    if part.startswith("attn_qkv."):
        kv = weights.packed * 2 * kv_heads // (heads + 2 * kv_heads)
        return LayerWeights(split=Weights(packed=weights.packed - kv), kv=Weights(packed=kv))
    return LayerWeights(split=weights)
