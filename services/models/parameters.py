"""Counting a model's weights from its architecture, for models whose files are not there or give only a total."""

from dataclasses import dataclass

from gpudeck.services.models.families import Family
from gpudeck.services.models.quantization import Quantization
from gpudeck.services.models.types import Experts, LayerWeights, Mla, WeightLayout, Weights

VOCABULARY_PADDING = 64  # vllm/model_executor/layers/vocab_parallel_embedding.py


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes that decide the count, as config.json gives them."""

    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    tied: bool
    family: Family
    mla: Mla | None = None
    experts: Experts | None = None
    dense_layers: frozenset[int] = frozenset()  # of a mixture of experts: the layers without experts
    qkv_bias: bool = False
    biases: bool = False
    positions: int = 0  # rows of a learned position table
    projected: int = 0  # width of an embedding that is projected to the hidden size (small OPT models); 0: that width
    encoder_elements: int = 0  # image or audio encoder

    @property
    def embedding_width(self) -> int:
        return self.projected or self.hidden_size

    @property
    def projection(self) -> int:
        return 0 if self.embedding_width == self.hidden_size else self.projected * self.hidden_size


def count_weights(shape: Shape, quantization: Quantization | None) -> WeightLayout:
    """The layout of all weights of this shape; linear layers packed where the checkpoint is quantized."""
    dense = _layer(shape, quantization, experts=None)
    sparse = _layer(shape, quantization, experts=shape.experts) if shape.experts is not None else dense
    padded = -(-shape.vocab_size // VOCABULARY_PADDING) * VOCABULARY_PADDING
    norm = shape.hidden_size * (2 if shape.family.norm_bias else 1)
    return WeightLayout(
        layers=tuple(dense if layer in shape.dense_layers else sparse for layer in range(shape.layers)),
        embedding=Weights(padded * shape.embedding_width),
        lm_head=Weights() if shape.tied else Weights(padded * shape.embedding_width),
        first_whole=Weights(shape.positions * shape.hidden_size + shape.projection + shape.encoder_elements),
        last_whole=Weights(norm + shape.projection),
    )


def count_parameters(shape: Shape) -> int:
    """The number of parameters, a shared embedding counted once and the vocabulary unpadded."""
    layout = count_weights(shape, None)
    total = sum((_sum(layer) for layer in layout.layers), Weights()).elements if layout.layers else 0
    embedding = shape.vocab_size * shape.embedding_width
    total += embedding if shape.tied else 2 * embedding
    return total + layout.first_whole.elements + layout.last_whole.elements


def _sum(layer: LayerWeights) -> Weights:
    return layer.split + layer.kv + layer.whole


def _layer(shape: Shape, quantization: Quantization | None, experts: Experts | None) -> LayerWeights:
    hidden = shape.hidden_size
    packing = None if quantization is None or quantization.experts_only else quantization.bytes_per_element
    expert_packing = None if quantization is None else quantization.bytes_per_element
    whole = shape.family.layer_norms * hidden * (2 if shape.family.norm_bias else 1)
    if shape.mla is not None:
        split, kv, down = _mla_elements(shape, shape.mla)
        whole += shape.mla.kv_lora_rank + (shape.mla.q_lora_rank or 0)
    else:
        split = 2 * hidden * shape.attention_heads * shape.head_dim
        kv = 2 * hidden * shape.kv_heads * shape.head_dim
        down = 0
        if shape.family.qk_norm:
            whole += 2 * shape.head_dim
        if shape.qkv_bias or shape.biases:
            whole += (shape.attention_heads + 2 * shape.kv_heads) * shape.head_dim
        if shape.biases:
            whole += hidden
    matrices = 3 if shape.family.gated else 2
    result = LayerWeights(_packed(split, packing), _packed(kv, packing), _packed(down, packing) + Weights(whole))
    if experts is None:
        biases = (matrices - 1) * shape.intermediate_size + hidden if shape.biases else 0
        mlp = _packed(matrices * hidden * shape.intermediate_size, packing)
        return result + LayerWeights(split=mlp, whole=Weights(biases))
    routed = experts.count * matrices * hidden * experts.intermediate_size
    shared = matrices * hidden * experts.shared_intermediate_size
    router = hidden * experts.count
    if shape.biases:
        router += experts.count + experts.count * ((matrices - 1) * experts.intermediate_size + hidden)
    mlp = _packed(routed, expert_packing) + _packed(shared, packing)
    return result + LayerWeights(split=mlp, whole=Weights(router))


def _mla_elements(shape: Shape, mla: Mla) -> tuple[int, int, int]:
    """Elements split over the ranks, of K and V (none: they are compressed), and of the copied down-projections."""
    hidden, heads = shape.hidden_size, shape.attention_heads
    query = heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
    up = mla.kv_lora_rank * heads * (mla.qk_nope_head_dim + mla.v_head_dim)
    output = heads * mla.v_head_dim * hidden
    down = hidden * (mla.kv_lora_rank + mla.qk_rope_head_dim)
    if mla.q_lora_rank is None:
        return hidden * query + up + output, 0, down
    return mla.q_lora_rank * query + up + output, 0, down + hidden * mla.q_lora_rank


def _packed(elements: int, bytes_per_element: float | None) -> Weights:
    return Weights(elements) if bytes_per_element is None else Weights(packed=int(elements * bytes_per_element))
