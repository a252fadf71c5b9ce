"""From config.json to a model's facts."""

from pathlib import Path
from typing import NamedTuple

from gpudeck.services.models.families import FAMILIES, LLAMA, Family, supports_pipeline
from gpudeck.services.models.fields import Fields, ModelError
from gpudeck.services.models.parameters import Shape, count_parameters, count_weights
from gpudeck.services.models.quantization import Quantization, quantization_of
from gpudeck.services.models.types import Experts, Mla, ModelFacts

# Beyond any real model (the deepest have 126 layers, the widest hidden size is 18,432), and small enough that what is
# made layer by layer stays small.
MAX_LAYERS = 1024
MAX_WIDTH = 1 << 20
_TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
_ENCODERS = ("vision_config", "audio_config", "vision_tower_config")


class ConfigFacts(NamedTuple):
    """A model as config.json alone tells it, and the sizes from which its weights were counted."""

    facts: ModelFacts
    shape: Shape


def facts_from_config(config: Fields, name: str, path: str) -> ConfigFacts:
    """The facts in a config.json.  Raises ModelError naming the field that is missing or wrong."""
    architectures = config.texts("architectures", 16)
    text, multimodal = _text_part(config)
    outer_type = config.text("model_type")
    model_type = text.text("model_type", default=outer_type)
    family = FAMILIES.get(model_type, FAMILIES.get(outer_type))
    guesses: list[str] = []
    if family is None:
        family = LLAMA
        guesses.append(f"the family {model_type or 'without a name'} is unknown: its weights are counted as Llama's")
    quantization = quantization_of(config) or quantization_of(text)
    if quantization is not None and quantization.guessed:
        guesses.append(f"the size of {quantization.method} weights is assumed")
    shape = _shape(config, text, family, model_type)
    if multimodal:
        guesses.append("the image or audio part is counted roughly")
    kinds, window = _layer_kinds(text, family, shape.layers)
    architecture = architectures[0] if architectures else ""
    if not architecture:
        guesses.append("config.json names no architecture")
    positions = text.maybe_whole("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    positions = _context_length(text, positions or family.defaults.get("max_position_embeddings"), model_type)
    return ConfigFacts(
        ModelFacts(
            name=name,
            path=path,
            architecture=architecture,
            layers=shape.layers,
            hidden_size=shape.hidden_size,
            attention_heads=shape.attention_heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            intermediate_size=shape.intermediate_size,
            vocab_size=shape.vocab_size,
            max_position_embeddings=positions,
            dtype=_dtype(config, text),
            tied_embeddings=shape.tied,
            quantization=None if quantization is None else quantization.method,
            quantization_group=None if quantization is None else quantization.group,
            quantization_scheme=None if quantization is None else quantization.scheme,
            quantization_block=None if quantization is None else quantization.block,
            parameters=count_parameters(shape),
            supports_pipeline=supports_pipeline(architecture),
            guesses=tuple(guesses),
            model_type=model_type,
            layer_kinds=kinds,
            sliding_window=window,
            mla=shape.mla,
            experts=shape.experts,
            multimodal=multimodal,
            gated_mlp=family.gated,
            rope_cache_elements=0 if family.learned_positions else _rope_cache(text, shape, positions, model_type),
            weights=count_weights(shape, quantization),
        ),
        shape,
    )


def quantization_in(config: Fields) -> Quantization | None:
    text, _ = _text_part(config)
    return quantization_of(config) or quantization_of(text)


def short_name(path: str) -> str:
    return Path(path).name or path


def _text_part(config: Fields) -> tuple[Fields, bool]:
    """The part that describes the language model, and whether an image or audio part stands beside it."""
    text = config
    for _ in range(2):  # Qwen-Omni: thinker_config.text_config
        text = next((part for name in _TEXT_PARTS if (part := text.inner(name)) is not None), text)
    return text, text is not config or any(config.inner(name) is not None for name in _ENCODERS)


def _shape(config: Fields, text: Fields, family: Family, model_type: str) -> Shape:
    defaults = family.defaults
    hidden = _width(text, "hidden_size", "n_embd", "d_model", default=defaults.get("hidden_size"))
    layers = text.whole(
        "num_hidden_layers", "n_layer", "num_layers", "n_layers", default=defaults.get("num_hidden_layers")
    )
    if layers > MAX_LAYERS:
        raise text.wrong(text.first("num_hidden_layers", "n_layer", "num_layers", "n_layers"), f"at most {MAX_LAYERS}")
    heads = _width(
        text, "num_attention_heads", "n_head", "num_heads", "n_heads", default=defaults.get("num_attention_heads")
    )
    head_dim = text.maybe_whole("head_dim") or defaults.get("head_dim") or hidden // heads
    if not 1 <= head_dim <= MAX_WIDTH:
        raise text.wrong("head_dim" if text.has("head_dim") else "num_attention_heads", "in proportion to hidden_size")
    experts, dense = _experts(text, family, layers)
    biases = text.flag("bias", False) if model_type == "falcon" else family.biases
    positions = 0
    if family.learned_positions:
        positions = text.whole("max_position_embeddings", "n_positions") + family.positions
    tied = config.flag("tie_word_embeddings", text.flag("tie_word_embeddings", family.tied))
    return Shape(
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=_kv_heads(text, heads, defaults.get("num_key_value_heads")),
        head_dim=head_dim,
        intermediate_size=_intermediate(text, hidden, defaults.get("intermediate_size")),
        vocab_size=text.whole("vocab_size", default=defaults.get("vocab_size") or config.maybe_whole("vocab_size")),
        tied=tied,
        family=family,
        mla=_mla(text),
        experts=experts,
        dense_layers=dense,
        qkv_bias=family.qkv_bias or text.flag("attention_bias", False),
        biases=biases,
        positions=positions,
        projected=text.whole("word_embed_proj_dim", default=0) if model_type == "opt" else 0,
        encoder_elements=_encoder_elements(config),
    )


def _width(text: Fields, *names: str, default: int | None = None) -> int:
    value = text.whole(*names, default=default)
    if value > MAX_WIDTH:
        raise text.wrong(text.first(*names), f"at most {MAX_WIDTH}")
    return value


def _kv_heads(text: Fields, heads: int, default: int | None) -> int:
    # Falcon's first generation and GPT-BigCode write one KV head as a flag.
    if text.flag("multi_query", False) and not text.flag("new_decoder_architecture", False):
        return 1
    return _width(text, "num_key_value_heads", "num_kv_heads", "n_head_kv", default=default or heads)


def _intermediate(text: Fields, hidden: int, default: int | None) -> int:
    # Llama 4's intermediate_size is its experts', and its layers without experts have one of their own.
    names = ("intermediate_size_mlp", "intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size")
    return _width(text, *names, default=default or 4 * hidden)


def _mla(text: Fields) -> Mla | None:
    rank = text.maybe_whole("kv_lora_rank")
    if rank is None:
        return None
    return Mla(
        kv_lora_rank=rank,
        qk_rope_head_dim=_width(text, "qk_rope_head_dim"),
        qk_nope_head_dim=_width(text, "qk_nope_head_dim"),
        v_head_dim=_width(text, "v_head_dim"),
        q_lora_rank=text.maybe_whole("q_lora_rank"),
        indexed=text.maybe_whole("index_head_dim") is not None,
    )


def _experts(text: Fields, family: Family, layers: int) -> tuple[Experts | None, frozenset[int]]:
    """The experts, and the layers that have none (DeepSeek's first ones, Qwen's mlp_only_layers and steps)."""
    count = text.maybe_whole("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts", least=0)
    if not count:
        return None, frozenset()
    if count > MAX_WIDTH:
        field = text.first("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
        raise text.wrong(field, f"at most {MAX_WIDTH}")
    size = _width(text, "moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")
    shared = text.whole("shared_expert_intermediate_size", default=0, least=0)
    shared = shared or text.whole("n_shared_experts", default=int(family.shared_expert), least=0) * size
    experts = Experts(
        count=count,
        per_token=text.whole("num_experts_per_tok", "experts_per_token", "moe_topk", default=1),
        intermediate_size=size,
        shared_intermediate_size=shared,
    )
    dense = set(range(min(text.whole("first_k_dense_replace", default=0, least=0), layers)))
    only = text.values.get("mlp_only_layers")
    if isinstance(only, list):
        dense |= {layer for layer in only if isinstance(layer, int) and 0 <= layer < layers}
    step = text.whole("decoder_sparse_step", "interleave_moe_layer_step", default=1)
    dense |= {layer for layer in range(layers) if (layer + 1) % step}
    return experts, frozenset(dense)


def _layer_kinds(text: Fields, family: Family, layers: int) -> tuple[tuple[str, ...], int | None]:
    """What each layer keeps per token, and the window of those that slide; empty where all layers are full."""
    window = text.maybe_whole("sliding_window", least=0) or family.defaults.get("sliding_window") or None
    if family.sliding == "tail" and not text.flag("use_sliding_window", False):
        window = None
    types = text.texts("layer_types", MAX_LAYERS)
    if types and len(types) == layers:
        kinds = tuple(_kind(kind, window) for kind in types)
    elif types and len(types) != layers:
        raise ModelError(
            f"{text.origin}: {text.prefix}layer_types names {len(types)} layers, but num_hidden_layers is {layers}: "
            "correct the file."
        )
    elif window is None or family.sliding == "never":
        return (), None
    else:
        kinds = tuple(_kind_by_rule(text, family.sliding, layer) for layer in range(layers))
    if all(kind == "full" for kind in kinds):
        return (), None
    return kinds, window if "sliding" in kinds else None


def _kind(layer_type: str, window: int | None) -> str:
    if layer_type in ("mamba", "mamba2", "linear_attention", "recurrent", "conv", "mlp", "moe"):
        return "state"
    return "sliding" if window is not None and "sliding" in layer_type else "full"


def _kind_by_rule(text: Fields, rule: str, layer: int) -> str:
    if rule == "all":
        slides = True
    elif rule == "even":
        slides = layer % 2 == 0
    elif rule == "tail":
        slides = layer >= text.whole("max_window_layers", default=0, least=0)
    else:
        slides = (layer + 1) % text.whole("sliding_window_pattern", "_sliding_window_pattern", default=6) != 0
    return "sliding" if slides else "full"


def _context_length(text: Fields, positions: int | None, model_type: str) -> int | None:
    """The longest context that vLLM takes from the config: rope scaling stretches some models' positions.

    vllm/config/model.py _get_and_verify_max_len: Gemma 3 and the su, longrope and llama3 kinds state the stretched
    length already, YaRN stretches the original one.
    """
    scaling = text.inner("rope_scaling")
    if scaling is None or positions is None or model_type.startswith("gemma3"):
        return positions
    kind = scaling.text("rope_type", "type")
    if kind in ("", "su", "longrope", "llama3", "default", "mrope"):
        return positions
    if kind == "yarn":
        positions = scaling.whole("original_max_position_embeddings", default=positions)
    return int(positions * _stretch(scaling))


def _stretch(scaling: Fields) -> float:
    return min(max(scaling.number("factor", 1.0), 1.0), 1024.0)


def _rope_cache(text: Fields, shape: Shape, positions: int | None, model_type: str) -> int:
    """Elements of vLLM's table of rotary positions: rows × rotary width (model_executor/layers/rotary_embedding)."""
    width = shape.mla.qk_rope_head_dim if shape.mla is not None else shape.head_dim
    rows = positions or 0
    scaling = text.inner("rope_scaling")
    if scaling is not None and model_type.startswith("gemma3") and scaling.text("rope_type", "type") == "linear":
        # Gemma 3 states its length already stretched, and the table is stretched once more.
        rows = int(rows * _stretch(scaling))
    # Gemma 3 keeps a second, unscaled table for its sliding layers.
    return (rows + ((positions or 0) if text.has("rope_local_base_freq") else 0)) * width


def _dtype(config: Fields, text: Fields) -> str:
    dtype = config.text("torch_dtype", "dtype") or text.text("torch_dtype", "dtype", default="float32")
    return dtype.removeprefix("torch.").lower()


def _encoder_elements(config: Fields) -> int:
    """A rough count of an image or audio encoder's weights: a transformer of its own sizes."""
    elements = 0
    for name in _ENCODERS:
        encoder = config.inner(name)
        if encoder is None:
            continue
        width = encoder.maybe_whole("hidden_size", "embed_dim", "d_model", "width")
        depth = encoder.maybe_whole("num_hidden_layers", "depth", "encoder_layers", "layers")
        if width is None or depth is None or width > MAX_WIDTH or depth > MAX_LAYERS:
            continue
        inner = encoder.maybe_whole("intermediate_size", "encoder_ffn_dim") or 4 * width
        elements += depth * (4 * width * width + 3 * width * inner)
        merged = width * min(encoder.whole("spatial_merge_size", default=1), 8) ** 2
        elements += merged * merged + merged * min(encoder.whole("out_hidden_size", default=width), MAX_WIDTH)
    return elements
