"""What gpudeck knows of each model family beyond its config: defaults that configs leave out, and shapes.

Sources: the configuration classes of transformers (defaults), vllm/model_executor/models (shapes), and for
`NO_PIPELINE` the models of vLLM 0.32 that lack the `SupportsPP` interface.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Family:
    """How a model type departs from Llama's shape; the defaults are what its config class assumes when silent."""

    tied: bool = False  # tie_word_embeddings where the config does not say
    gated: bool = True  # gate, up and down projections; else up and down only
    biases: bool = False  # every projection has a bias
    qkv_bias: bool = False
    qk_norm: bool = False
    layer_norms: int = 2  # hidden-sized norms in a layer
    norm_bias: bool = False  # LayerNorm, which has a bias, instead of RMSNorm
    positions: int = 0  # rows that the learned position table has beyond max_position_embeddings
    learned_positions: bool = False
    shared_expert: bool = False  # one beside the routed ones, as wide as they are, that the config does not name
    # Which layers slide where config.json has no layer_types: "all", "even" (0, 2, 4 …), "pattern" (all but every
    # n-th), "tail" (from max_window_layers on, if use_sliding_window), "never".
    sliding: str = "never"
    defaults: dict[str, int] = field(default_factory=dict)


LLAMA = Family()
_GEMMA3_DEFAULTS = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262208,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
}
_LLAMA4 = Family(shared_expert=True)
_MISTRAL = Family(sliding="all")
_QWEN2 = Family(qkv_bias=True, sliding="tail")
_QWEN3 = Family(qk_norm=True, sliding="tail")
_GEMMA3 = Family(tied=True, qk_norm=True, layer_norms=4, sliding="pattern", defaults=_GEMMA3_DEFAULTS)

# By config.json's model_type; text parts of multimodal models under their own type.
FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "llama4": _LLAMA4,
    "llama4_text": _LLAMA4,
    "mistral": _MISTRAL,
    "ministral": _MISTRAL,
    "mixtral": _MISTRAL,
    "qwen2": _QWEN2,
    "qwen2_moe": _QWEN2,
    "qwen2_vl": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "qwen3_vl_moe_text": _QWEN3,
    "gemma": Family(tied=True, defaults={"head_dim": 256}),
    "gemma2": Family(tied=True, layer_norms=4, sliding="even", defaults={"head_dim": 256, "sliding_window": 4096}),
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "phi3": Family(sliding="all"),
    "deepseek_v2": LLAMA,
    "deepseek_v3": LLAMA,
    "deepseek_v32": LLAMA,
    "kimi_k2": LLAMA,
    "gpt_oss": Family(biases=True, sliding="even", defaults={"head_dim": 64}),
    "opt": Family(tied=True, gated=False, biases=True, norm_bias=True, learned_positions=True, positions=2),
    "gpt2": Family(tied=True, gated=False, biases=True, norm_bias=True, learned_positions=True),
    "falcon": Family(tied=True, gated=False, norm_bias=True, layer_norms=1),
}

# Class names in config.json's `architectures` before their "For…" ending.
NO_PIPELINE = frozenset(
    {
        "Aria",
        "DeepseekV4",
        "FireRedASR2",
        "Gemma3n",
        "HrmText",
        "IQuestLoopCoder",
        "Idefics3",
        "Mamba2",
        "NemotronParse",
        "PaddleOCRVL",
        "Phi4MM",
        "SmolVLM",
        "Whisper",
        "Zamba2",
    }
)


def supports_pipeline(architecture: str) -> bool:
    return architecture.split("For", 1)[0] not in NO_PIPELINE
