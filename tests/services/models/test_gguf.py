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
from gpudeck.services.models.types import Experts, Mla
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


def split(path: Path, count: int) -> list[Path]:
    """A model whose tensors lie in `count` files, one layer in each; the first has the metadata."""
    parts = [path.with_name(f"{path.name}-{number + 1:05}-of-{count:05}.gguf") for number in range(count)]
    for number, part in enumerate(parts):
        writer = GGUFWriter(part, "llama")
        if number == 0:
            writer.add_block_count(count)
            writer.add_embedding_length(64)
            writer.add_head_count(4)
            writer.add_token_list(["a", "b"])
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", count)
        writer.add_tensor(f"blk.{number}.attn_q.weight", np.zeros((64, 64), dtype=np.float16))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return parts


def test_a_split_model_is_counted_whole(tmp_path: Path) -> None:
    parts = split(tmp_path / "big", 3)
    for part in (parts[0], parts[2]):
        read = read_model(str(part))
        assert (read.name, read.path) == ("big", str(parts[0]))
        assert read.weights is not None
        assert [layer.split.packed for layer in read.weights.layers] == [64 * 64 * 2] * 3


def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    parts = split(tmp_path / "big", 3)
    parts[1].unlink()
    with pytest.raises(OperatorError, match=r"big-00002-of-00003\.gguf is a part of this model and is not there"):
        read_model(str(parts[0]))
    renamed = parts[0].rename(tmp_path / "big.gguf")
    with pytest.raises(OperatorError, match="says that the model has 3 parts"):
        read_model(str(renamed))
    with pytest.raises(OperatorError, match=r"big-00001-of-00003\.gguf can not be read"):
        read_model(str(parts[2]))


def test_a_mixture_of_experts_with_latent_attention(tmp_path: Path) -> None:
    """Names and sizes as in the files of DeepSeek-V2-Lite."""
    path = tmp_path / "deepseek.gguf"
    writer = GGUFWriter(path, "deepseek2")
    writer.add_block_count(1)
    writer.add_embedding_length(2048)
    writer.add_feed_forward_length(10944)
    writer.add_head_count(16)
    writer.add_head_count_kv(16)
    writer.add_key_length(192)
    writer.add_value_length(128)
    writer.add_kv_lora_rank(512)
    writer.add_rope_dimension_count(64)
    writer.add_expert_count(64)
    writer.add_expert_used_count(6)
    writer.add_expert_shared_count(2)
    writer.add_expert_feed_forward_length(1408)
    writer.add_token_list(["a", "b"])
    writer.add_tensor("blk.0.ffn_gate_exps.weight", np.zeros((2, 16, 32), dtype=np.float16))
    writer.add_tensor("blk.0.attn_kv_a_mqa.weight", np.zeros((16, 32), dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    read = read_model(str(path))
    assert read.mla == Mla(512, 64, 128, 128, None)
    assert read.experts == Experts(64, 6, 1408, 2816)
    assert read.weights is not None
    assert read.weights.layers[0].split.packed == 2 * 16 * 32 * 2
    assert read.weights.layers[0].whole.packed == 16 * 32 * 2


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
