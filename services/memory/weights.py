"""The bytes of weights that one rank holds."""

from collections.abc import Iterable
from dataclasses import dataclass

from gpudeck.services.box.types import MIB
from gpudeck.services.memory.lora import adapter_elements
from gpudeck.services.memory.matrices import rank_matrices, rounding
from gpudeck.services.memory.settings import Settings
from gpudeck.services.models.types import LayerWeights, ModelFacts, Weights

# What loading leaves besides the weights and the allocator's rounding, since a block that is free may be taken with up
# to 20 MiB too much: 0 to 48 MiB over 20 models on an H200 (vLLM 0.24).
LOADING_REST = 8 * MIB

# --quantization on a checkpoint that is not quantized: bytes per element of a linear layer afterwards.
ONLINE_BYTES = {
    "fp8": 1.0, "fp8_per_tensor": 1.0, "fp8_per_block": 1.0, "int8": 1.0, "experts_int8": 1.0,
    "mxfp8": 1 + 1 / 32, "nvfp4": 0.5 + 1 / 16, "mxfp4": 0.5 + 1 / 32, "bitsandbytes": 0.5 + 4 / 64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StageShare:
    """A stage of `tensor_parallel` ranks that holds the layers from `first_layer` up to `end_layer`."""

    first_layer: int
    end_layer: int
    tensor_parallel: int
    is_first: bool
    is_last: bool

    @property
    def layers(self) -> int:
        return max(self.end_layer - self.first_layer, 0)


def rank_weights(model: ModelFacts, settings: Settings, quantization: str | None, share: StageShare) -> int:
    """Bytes on each rank of a stage once its weights are loaded; `quantization` is the spec's option."""
    if model.weights is None:
        return 0
    total = tensor_bytes(model, settings, quantization, share)
    ends = share.is_first + share.is_last
    adapters = adapter_elements(model, settings.lora, share.layers, share.tensor_parallel, ends=ends)
    total += adapters * settings.dtype_bytes + model.rope_cache_elements * settings.dtype_bytes
    if model.quantization is None:
        tables = ends - (share.is_first and share.is_last and model.tied_embeddings)
        matrices = rank_matrices(model, share.layers, share.tensor_parallel, embeddings=tables)
        total += rounding(matrices, settings.dtype_bytes, _linear_bytes(model, settings, quantization))
    return max(total - settings.offload_bytes, 0) + LOADING_REST


def tensor_bytes(model: ModelFacts, settings: Settings, quantization: str | None, share: StageShare) -> int:
    """The weights themselves on each rank of a stage.

    Split weights are divided by TP, K and V no further than to one KV head a rank, norms and routers are on every rank;
    the embedding lies on the first stage (and on the last where the head is tied to it), the head on the last.
    """
    layout = model.weights
    if layout is None:
        return 0
    layers = layout.layers[share.first_layer : share.end_layer]
    ranks = share.tensor_parallel
    dtype = settings.dtype_bytes
    linear = _linear_bytes(model, settings, quantization)
    split = _sum(layer.split for layer in layers).bytes(linear) - _elsewhere(model, settings, layers, linear)
    total = split * _padding(model, ranks) / ranks
    total += _sum(layer.kv for layer in layers).bytes(linear) / min(ranks, model.kv_heads)
    total += _sum(layer.whole for layer in layers).bytes(dtype)
    if share.is_first:
        total += layout.embedding.bytes(dtype) / ranks + layout.first_whole.bytes(dtype)
    if share.is_last:
        head = layout.embedding if model.tied_embeddings and not share.is_first else layout.lm_head
        total += head.bytes(dtype) / ranks + layout.last_whole.bytes(dtype)
    return int(total)


def _linear_bytes(model: ModelFacts, settings: Settings, quantization: str | None) -> float:
    if quantization is None or model.quantization is not None:
        return settings.dtype_bytes
    return ONLINE_BYTES.get(quantization, settings.dtype_bytes)


def _elsewhere(model: ModelFacts, settings: Settings, layers: tuple[LayerWeights, ...], linear: float) -> float:
    """Bytes of these layers' experts that lie on the ranks of other copies.

    Without expert parallelism each copy has all of them; with it they are dealt out over the ranks of all copies
    (vllm/model_executor/layers/fused_moe/config.py FusedMoEParallelConfig).
    """
    if model.experts is None or settings.expert_copies < 2:
        return 0.0
    matrices = [matrix.elements * matrix.count for matrix in rank_matrices(model, 1, 1, embeddings=0)]
    routed = model.experts.count * model.hidden_size * model.experts.intermediate_size * (3 if model.gated_mlp else 2)
    sparse = max((layer.split.bytes(linear) for layer in layers), default=0)
    # Layers without experts (DeepSeek's first ones) are far smaller than the others.
    held = sum(layer.split.bytes(linear) for layer in layers if layer.split.bytes(linear) * 2 > sparse)
    return held * routed / max(sum(matrices), 1) * (1 - 1 / settings.expert_copies)


def _sum(parts: Iterable[Weights]) -> Weights:
    elements = packed = 0
    for part in parts:
        elements += part.elements
        packed += part.packed
    return Weights(elements, packed)


def _padding(model: ModelFacts, ranks: int) -> float:
    """MXFP4 experts are padded to a multiple of 256 on each rank (measured: GPT-OSS-20B, 2880 to 3072)."""
    if model.quantization != "mxfp4" or model.experts is None:
        return 1.0
    part = model.experts.intermediate_size / ranks
    return (-(-part // 256) * 256) / part
