"""Reading real and broken model directories."""

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpudeck.services.errors import OperatorError
from gpudeck.services.models.read import read_model
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.text import printable
from tests.services.models.files import TINY, safetensors_header, tiny_tensors, write_config, write_safetensors


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_config(tmp_path / "tiny")


def refused(path: Path | str) -> str:
    with pytest.raises(OperatorError) as caught:
        read_model(str(path))
    message = str(caught.value)
    assert printable(message) == message
    return message


def test_weights_are_counted_from_the_headers(model: Path) -> None:
    counted = read_model(str(model))
    size = write_safetensors(model / "model.safetensors", tiny_tensors())
    read = read_model(str(model))
    assert read.weight_bytes == size
    # The headers and the architecture agree layer by layer.
    assert read.weights == counted.weights
    assert read.path == str(model)


def test_float32_weights_are_loaded_in_16_bits(model: Path) -> None:
    size = write_safetensors(model / "model.safetensors", tiny_tensors(), "F32", 4)
    assert read_model(str(model)).weight_bytes == size // 2


def test_quantized_tensors_stay_as_they_are(model: Path) -> None:
    write_safetensors(model / "model.safetensors", tiny_tensors(), "F8_E4M3", 1)
    layout = read_model(str(model)).weights
    assert layout is not None
    assert layout.layers[0].split.elements == 0
    assert layout.layers[0].kv.packed == 2 * 32 * 64


def test_an_index_names_the_files(model: Path) -> None:
    shapes = tiny_tensors()
    names = sorted(shapes)
    first, second = dict.fromkeys(names[:9]), dict.fromkeys(names[9:])
    size = write_safetensors(model / "model-1.safetensors", {name: shapes[name] for name in first})
    size += write_safetensors(model / "model-2.safetensors", {name: shapes[name] for name in second})
    write_safetensors(model / "stray.safetensors", {"model.layers.0.mlp.extra": [1000, 1000]})
    weight_map = dict.fromkeys(first, "model-1.safetensors") | dict.fromkeys(second, "model-2.safetensors")
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert read_model(str(model)).weight_bytes == size
    (model / "model-2.safetensors").unlink()
    assert "model-2.safetensors is named by model.safetensors.index.json and is not there" in refused(model)


def test_mistrals_second_copy_is_not_counted(model: Path) -> None:
    size = write_safetensors(model / "model.safetensors", tiny_tensors())
    write_safetensors(model / "consolidated.safetensors", tiny_tensors())
    assert read_model(str(model)).weight_bytes == size


def test_multi_token_prediction_layers_are_left_out(model: Path) -> None:
    size = write_safetensors(model / "model.safetensors", tiny_tensors())
    write_safetensors(model / "mtp.safetensors", {"model.layers.2.mlp.down_proj.weight": [64, 128]})
    assert read_model(str(model)).weight_bytes == size


def test_pytorch_files_give_the_total(model: Path) -> None:
    (model / "pytorch_model.bin").write_bytes(b"")
    os.truncate(model / "pytorch_model.bin", 400_000)
    read = read_model(str(model))
    assert read.weight_bytes == 400_000
    assert read.weights is not None
    total = read.weights.embedding.bytes(2) + read.weights.lm_head.bytes(2)
    total += sum((layer.split + layer.kv + layer.whole).bytes(2) for layer in read.weights.layers)
    assert 390_000 < total <= 400_000


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"hidden_size": ...}, "lacks the field hidden_size"),
        ({"hidden_size": "64"}, "hidden_size must be a whole number"),
        ({"hidden_size": 0}, "hidden_size"),
        ({"hidden_size": -64}, "hidden_size"),
        ({"hidden_size": 10**30}, "hidden_size"),
        ({"hidden_size": 1e300}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"hidden_size": [64]}, "hidden_size"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"num_attention_heads": 1.5}, "num_attention_heads"),
        ({"num_attention_heads": 1000}, "num_attention_heads"),
        ({"num_key_value_heads": 10**12}, "num_key_value_heads"),
        ({"head_dim": 10**8}, "head_dim"),
        ({"intermediate_size": "wide"}, "intermediate_size"),
        ({"vocab_size": ...}, "vocab_size"),
        ({"vocab_size": 0}, "vocab_size"),
        ({"architectures": "Llama"}, "architectures"),
        ({"torch_dtype": 16}, "torch_dtype"),
        ({"quantization_config": "awq"}, "quantization_config"),
        ({"quantization_config": {"quant_method": 4}}, "quantization_config.quant_method"),
        ({"text_config": 3}, "text_config"),
        ({"text_config": {"hidden_size": "x"}}, "text_config."),
        ({"rope_scaling": []}, "rope_scaling"),
        ({"rope_scaling": {"type": "linear", "factor": "many"}}, "rope_scaling.factor"),
        ({"layer_types": ["full_attention"]}, "layer_types names 1 layers"),
        ({"num_local_experts": 10**12}, "num_local_experts"),
        ({"kv_lora_rank": 512}, "qk_rope_head_dim"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
    ],
)
def test_a_wrong_field_is_named_with_its_file(model: Path, changes: dict[str, Any], named: str) -> None:
    message = refused(write_config(model, **changes))
    assert named in message
    assert "config.json" in message


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a":' * 100_000, b"[" * 200_000, b"NaN"])
def test_a_config_that_is_no_json_object(model: Path, text: bytes) -> None:
    (model / "config.json").write_bytes(text)
    assert "config.json" in refused(model)


def test_a_config_that_is_no_plain_file(model: Path) -> None:
    config = model / "config.json"
    config.unlink()
    os.mkfifo(config)
    assert "no regular file" in refused(model)
    config.unlink()
    config.symlink_to(config)
    assert "config.json can not be read" in refused(model)
    config.unlink()
    config.mkdir()
    assert "no regular file" in refused(model)
    config.rmdir()
    assert "has no config.json" in refused(model)
    with config.open("wb") as file:
        file.truncate(1 << 40)
    assert "more than" in refused(model)


@pytest.mark.parametrize(
    "index",
    [
        {},
        {"weight_map": []},
        {"weight_map": {}},
        {"weight_map": {"a": 1}},
        {"weight_map": {"a": "../../etc/passwd"}},
        {"weight_map": {"a": "x/y.safetensors"}},
        {"weight_map": {"a": ""}},
        {"weight_map": {"a": ".."}},
        {"weight_map": {"a": "a\0b"}},
        {"weight_map": {"a": "absent.safetensors"}},
        {"weight_map": {"a": "model.safetensors.index.json"}},
    ],
)
def test_a_wrong_index_is_named(model: Path, index: dict[str, Any]) -> None:
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "model.safetensors.index.json" in refused(model)


def test_a_cyclic_index_is_named(model: Path) -> None:
    index = model / "model.safetensors.index.json"
    index.symlink_to(index.name)
    assert "model.safetensors.index.json can not be read" in refused(model)


def entry(**changes: Any) -> bytes:
    raw = json.dumps({"w": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8], **changes}}).encode()
    return struct.pack("<Q", len(raw)) + raw + bytes(8)


@pytest.mark.parametrize(
    ("contents", "named"),
    [
        (b"", "cut short"),
        (b"\0\0", "cut short"),
        (struct.pack("<Q", 100), "cut short"),
        (struct.pack("<Q", 1 << 63) + b"{}", "cut short"),
        (struct.pack("<Q", 2) + b"{", "cut short"),
        (struct.pack("<Q", 2) + b"[]", "no JSON object"),
        (struct.pack("<Q", 2) + b"{x", "no valid JSON"),
        (safetensors_header({"w": [2, 2]}), "cut short"),
        (entry(dtype=None), "lacks its dtype"),
        (entry(shape=[-1]), "shape"),
        (entry(shape=[10**30]), "shape"),
        (entry(shape="2x2"), "shape"),
        (entry(shape=[2, 3]), "does not match its shape"),
        (entry(data_offsets=[8, 0]), "data_offsets"),
        (entry(data_offsets=[0]), "data_offsets"),
        (entry(data_offsets=[0, 1 << 39]), "cut short"),
        (struct.pack("<Q", 7) + b'{"w":3}', "must be an object"),
    ],
)
def test_a_broken_header_is_named(model: Path, contents: bytes, named: str) -> None:
    (model / "model.safetensors").write_bytes(contents)
    message = refused(model)
    assert "model.safetensors" in message
    assert named in message


def test_a_huge_header_is_not_read(model: Path) -> None:
    path = model / "model.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 1 << 34))
        file.truncate(1 << 35)
    assert "claims a header" in refused(model)


def test_a_weight_file_that_is_a_pipe(model: Path) -> None:
    os.mkfifo(model / "model.safetensors")
    assert "no regular file" in refused(model)


@pytest.mark.parametrize(
    "path",
    ["", "-rf", "--model", "no/such/place/at all", "/no/such", "a\nb", "x\x1b[2J", "\0", "~nobody-here/x", "a" * 5000],
)
def test_what_is_no_model(path: str) -> None:
    refused(path)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    assert "no .gguf file" in refused(path)


def test_a_relative_path_is_made_absolute(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    assert read_model("tiny").path == str(model)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (*TINY, "text_config", "vision_config", "quantization_config", "rope_scaling", "layer_types", "head_dim",
          "sliding_window", "num_local_experts", "kv_lora_rank", "n_shared_experts", "mlp_only_layers",
          "decoder_sparse_step", "moe_intermediate_size", "tie_word_embeddings")  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=4))
def test_any_config_is_read_or_refused_in_a_sentence(tmp_path: Path, changes: dict[str, Any]) -> None:
    directory = write_config(tmp_path / "any", **changes)
    try:
        read = read_model(str(directory))
    except OperatorError as error:
        text = str(error)
        assert printable(text) == text
        return
    assert isinstance(read, ModelFacts)
    assert read.parameters is not None
    assert read.parameters > 0
