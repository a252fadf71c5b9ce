"""Reading .gguf files by their header."""

import struct
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpudeck.services.errors import OperatorError
from gpudeck.services.models.gguf_header import read_header
from gpudeck.services.models.read import read_model
from gpudeck.services.text import printable
from tests.services.models.files import gguf_header, gguf_number, gguf_text, gguf_words


def write_llama(path: Path) -> Path:
    """A .gguf file as the gguf package itself writes it."""
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_context_length(512)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_token_list(["a", "b", "c"] * 100)
    writer.add_tensor("token_embd.weight", np.zeros((300, 64), dtype=np.float16))
    writer.add_tensor("output_norm.weight", np.zeros(64, dtype=np.float32))
    for layer in range(2):
        writer.add_tensor(f"blk.{layer}.attn_q.weight", np.zeros((64, 64), dtype=np.float16))
        writer.add_tensor(f"blk.{layer}.attn_k.weight", np.zeros((32, 64), dtype=np.float16))
        writer.add_tensor(f"blk.{layer}.attn_norm.weight", np.zeros(64, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_file_of_the_gguf_package(tmp_path: Path) -> None:
    path = write_llama(tmp_path / "tiny.gguf")
    read = read_model(str(path))
    assert (read.name, read.architecture, read.quantization) == ("tiny", "LlamaForCausalLM", "gguf")
    assert (read.layers, read.hidden_size, read.attention_heads, read.kv_heads, read.head_dim) == (2, 64, 4, 2, 16)
    assert (read.vocab_size, read.max_position_embeddings) == (300, 512)
    assert read.tied_embeddings
    assert read.weights is not None
    assert read.weights.embedding.packed == 300 * 64 * 2
    assert read.weights.layers[0].kv.packed == 32 * 64 * 2
    assert read.weights.layers[1].split.packed == 64 * 64 * 2
    assert read.weight_bytes == 300 * 64 * 2 + 64 * 4 + 2 * (96 * 64 * 2 + 64 * 4)


def test_only_the_header_is_read(tmp_path: Path) -> None:
    path = write_llama(tmp_path / "tiny.gguf")
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    assert read_model(str(path)).layers == 2


LLAMA = [gguf_text("general.architecture") + struct.pack("<I", 8) + gguf_text("llama")]
SIZES = [
    gguf_number("llama.block_count", 2),
    gguf_number("llama.embedding_length", 64),
    gguf_number("llama.attention.head_count", 4),
]
WORDS = [gguf_words("tokenizer.ggml.tokens", ["a", "b"])]


@pytest.mark.parametrize(
    ("contents", "named"),
    [
        (b"", "cut short"),
        (b"GGML" + bytes(100), "does not begin with GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "version 9"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "claims"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "claims"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 5), "cut short"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 62), "claims a text"),
        (gguf_header([gguf_text("a") + struct.pack("<I", 77)], []), "unknown type 77"),
        (gguf_header([gguf_text("a") + struct.pack("<IIQ", 9, 4, 1 << 50)], []), "claims an array"),
        (gguf_header([gguf_text("a") + struct.pack("<IIQ", 9, 4, 1 << 23)], []), "cut short"),
        (gguf_header([gguf_text("a") + struct.pack("<IIQ", 9, 8, 1 << 23)], []), "cut short"),
        (gguf_header([gguf_text("a") + struct.pack("<IIQ", 9, 9, 1)], []), "unknown array type"),
        (gguf_header([], []), "general.architecture"),
        (gguf_header(LLAMA, []), "llama.block_count"),
        (gguf_header([*LLAMA, *SIZES], []), "vocabulary"),
        (gguf_header([*LLAMA, gguf_number("llama.block_count", 1 << 30), *SIZES[1:], *WORDS], []), "block_count"),
        (gguf_header([*LLAMA, SIZES[0], gguf_number("llama.embedding_length", 0), SIZES[2]], []), "embedding_length"),
        (gguf_header(LLAMA, [gguf_text("w") + struct.pack("<IQIQ", 1, 64, 0, 0)]), "cut short"),
        (gguf_header(LLAMA, [gguf_text("w") + struct.pack("<IQIQ", 1, 1 << 60, 0, 0)]), "elements"),
        (gguf_header(LLAMA, [gguf_text("w") + struct.pack("<IQIQ", 1, 0, 9999, 0)]), "quantization type"),
        (gguf_header(LLAMA, [gguf_text("w") + struct.pack("<I", 99)]), "99 dimensions"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, contents: bytes, named: str) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(contents)
    with pytest.raises(OperatorError) as caught:
        read_model(str(path))
    assert "broken.gguf" in str(caught.value)
    assert named in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 2000), st.binary(min_size=1, max_size=8))
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, place: int, damage: bytes) -> None:
    whole = write_llama(tmp_path / "whole.gguf").read_bytes()
    path = tmp_path / "damaged.gguf"
    path.write_bytes(whole[:place] + damage + whole[place + len(damage) :])
    try:
        assert read_model(str(path)).layers > 0
    except OperatorError as error:
        text = str(error)
        assert printable(text) == text


def test_lists_keep_their_length(tmp_path: Path) -> None:
    path = tmp_path / "lists.gguf"
    path.write_bytes(gguf_header([*LLAMA, *WORDS], []))
    header = read_header(path)
    assert header.lengths == {"tokenizer.ggml.tokens": 2}
    assert header.values["general.architecture"] == "llama"
