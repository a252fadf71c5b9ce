"""Model directories and files that the tests write."""

import json
import struct
from pathlib import Path
from typing import Any

TINY: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 512,
}


def tiny_tensors() -> dict[str, list[int]]:
    """Names and shapes of a Llama of TINY's sizes."""
    shapes = {"model.embed_tokens.weight": [256, 64], "model.norm.weight": [64], "lm_head.weight": [256, 64]}
    for layer in range(2):
        prefix = f"model.layers.{layer}."
        shapes |= {
            f"{prefix}self_attn.q_proj.weight": [64, 64],
            f"{prefix}self_attn.k_proj.weight": [32, 64],
            f"{prefix}self_attn.v_proj.weight": [32, 64],
            f"{prefix}self_attn.o_proj.weight": [64, 64],
            f"{prefix}mlp.gate_proj.weight": [128, 64],
            f"{prefix}mlp.up_proj.weight": [128, 64],
            f"{prefix}mlp.down_proj.weight": [64, 128],
            f"{prefix}input_layernorm.weight": [64],
            f"{prefix}post_attention_layernorm.weight": [64],
        }
    return shapes


def write_config(directory: Path, *, whole: dict[str, Any] | None = None, **changes: Any) -> Path:
    """A model directory of TINY's config with these changes (`...` leaves one out), or of another as a whole."""
    directory.mkdir(parents=True, exist_ok=True)
    base = TINY if whole is None else whole
    config = {name: value for name, value in {**base, **changes}.items() if value is not ...}
    (directory / "config.json").write_text(json.dumps(config))
    return directory


def safetensors_header(shapes: dict[str, list[int]], dtype: str = "BF16", unit: int = 2) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, shape in shapes.items():
        size = unit
        for length in shape:
            size *= length
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw


def write_safetensors(path: Path, shapes: dict[str, list[int]], dtype: str = "BF16", unit: int = 2) -> int:
    """Write a file of this header whose contents are a hole; returns the contents' size."""
    header = safetensors_header(shapes, dtype, unit)
    size = 0
    for shape in shapes.values():
        elements = 1
        for length in shape:
            elements *= length
        size += elements * unit
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + size)
    return size


def gguf_text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_number(key: str, value: int) -> bytes:
    return gguf_text(key) + struct.pack("<II", 4, value)


def gguf_words(key: str, words: list[str]) -> bytes:
    return gguf_text(key) + struct.pack("<IIQ", 9, 8, len(words)) + b"".join(gguf_text(word) for word in words)


def gguf_header(values: list[bytes], tensors: list[bytes], version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values)) + b"".join(values) + b"".join(tensors)
