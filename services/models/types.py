"""What is known of a model without loading it."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Weights:
    """One kind of weights: `elements` are held in the engine's dtype, `packed` bytes stay as they are (quantized)."""

    elements: int = 0
    packed: int = 0

    def __add__(self, other: "Weights") -> "Weights":
        return Weights(self.elements + other.elements, self.packed + other.packed)

    def bytes(self, dtype_bytes: float) -> int:
        return int(self.elements * dtype_bytes) + self.packed


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One decoder layer's weights, by what tensor parallelism does with them.

    `kv` are the K and V projections: split like the rest until a rank has one KV head, and copied beyond.
    """

    split: Weights = Weights()  # each rank holds 1/TP
    kv: Weights = Weights()
    whole: Weights = Weights()  # norms, routers, MLA's down-projections: on every rank

    def __add__(self, other: "LayerWeights") -> "LayerWeights":
        return LayerWeights(self.split + other.split, self.kv + other.kv, self.whole + other.whole)


@dataclass(frozen=True, slots=True)
class WeightLayout:
    """Where a model's weights lie: decoder layers, and what only the first or the last stage holds."""

    layers: tuple[LayerWeights, ...]
    embedding: Weights = Weights()  # first stage, and the last too where the head is tied to it; split by vocabulary
    lm_head: Weights = Weights()  # last stage; nothing where it is tied to the embedding
    first_whole: Weights = Weights()  # position table, image or audio encoder: first stage, on every rank
    last_whole: Weights = Weights()  # final norm: last stage, on every rank


@dataclass(frozen=True, slots=True)
class Mla:
    """Multi-head latent attention (DeepSeek): one compressed cache entry for all heads."""

    kv_lora_rank: int
    qk_rope_head_dim: int
    qk_nope_head_dim: int
    v_head_dim: int
    q_lora_rank: int | None = None
    indexed: bool = False  # a sparse index picks the tokens that are looked at (DeepSeek V3.2)


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts; `shared_intermediate_size` is that of all shared experts together, 0 without any."""

    count: int
    per_token: int
    intermediate_size: int
    shared_intermediate_size: int = 0


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Architecture and weights of a model, from its config, headers and file sizes; sizes in elements or bytes."""

    name: str  # the short name on screen
    path: str  # what vLLM is given
    architecture: str  # the class in config.json: "LlamaForCausalLM"
    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int | None
    dtype: str  # "bfloat16", "float16", "float32"
    tied_embeddings: bool = False
    quantization: str | None = None  # config.json's quant_method
    weight_bytes: int | None = None  # counted from the files; None where there are none
    parameters: int | None = None  # estimated from the architecture
    supports_pipeline: bool = True
    guesses: tuple[str, ...] = ()  # figures that are assumed because the family is unknown

    model_type: str = ""
    # What a layer keeps for each token, layer by layer: "full", "sliding" (a window of `sliding_window` tokens) or
    # "state" (a fixed state, as in Mamba).  Empty: all are full.
    layer_kinds: tuple[str, ...] = ()
    sliding_window: int | None = None
    mla: Mla | None = None
    experts: Experts | None = None
    multimodal: bool = False  # judged by its text part
    quantization_group: int | None = None  # weights that share a scale, along a layer's input
    quantization_scheme: str | None = None  # of compressed-tensors: "W8A8-FP8", "W4A8-FP8", "NVFP4", "MXFP4"
    quantization_block: tuple[int, int] | None = None  # block_n and block_k of block-wise fp8
    gated_mlp: bool = True  # gate and up projections beside the down projection, as in Llama
    rope_cache_elements: int = 0  # the table of rotary positions that vLLM keeps on every rank
    weights: WeightLayout | None = field(default=None, repr=False)

    def kind(self, layer: int) -> str:
        return self.layer_kinds[layer] if self.layer_kinds else "full"


@dataclass(frozen=True, slots=True)
class ShelfEntry:
    """A model found on this machine, before its config is read in full."""

    name: str
    path: str  # a directory, a .gguf file, or the hub id of a cached model
    origin: str  # "directory", "gguf", "hub cache"
    size_bytes: int | None = None
    problem: str | None = None  # one sentence where it can not be used
