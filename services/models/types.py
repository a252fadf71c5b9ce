"""What is known of a model without loading it."""

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class ShelfEntry:
    """A model found on this machine, before its config is read in full."""

    name: str
    path: str  # a directory, a .gguf file, or the hub id of a cached model
    origin: str  # "directory", "gguf", "hub cache"
    size_bytes: int | None = None
    problem: str | None = None  # one sentence where it can not be used
