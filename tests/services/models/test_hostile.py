"""Real models with hostile changes: each is read or refused in a sentence, and what is read can be judged.

`GPUDECK_FUZZ=20000 .venv/bin/python -m pytest tests/services/models/test_hostile.py` tries as many of each kind.
"""

import json
import math
import os
import struct
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpudeck.services.box.types import GIB, Box
from gpudeck.services.errors import OperatorError
from gpudeck.services.memory.plan import memory_detail
from gpudeck.services.models.read import read_model
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import Judgement, VerdictState
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.judge import judge
from gpudeck.services.text import printable
from tests.services.models.files import (
    TINY,
    gguf_header,
    gguf_text,
    gguf_words,
    tiny_tensors,
    write_config,
    write_safetensors,
)
from tests.services.models.published import PUBLISHED
from tests.services.rules.plans import card, spec

fuzzed = settings(
    max_examples=int(os.environ.get("GPUDECK_FUZZ", "60")), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MODELS = Path(__file__).parents[2] / "data" / "models"
CONFIGS: list[dict[str, Any]] = [json.loads(path.read_text()) for path in sorted(MODELS.glob("*/config.json"))]
CONFIGS += [one.config for one in PUBLISHED]
BOX = Box(tuple(card(index, "NVIDIA H200", 143771, "9.0") for index in range(4)))
PLACEMENTS: tuple[EngineSpec, ...] = (spec((0,)), spec((0, 1)), spec((0,), (1,), (2,)), spec((0, 1), (2, 3)))


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = {"text_config": value} if depth % 2 else [value]
    return value


hostile = st.one_of(
    st.sampled_from(
        (0, -1, 1, 2, 3, 7, 10**6, 10**9, 10**12, 10**30, -(10**30), 0.5, 1e300, math.nan, math.inf, -0.0, "", "8",
         "many", "\x1b[2J", "a" * 300, None, True, False, [], {}, [1], [-1], [[]], [None], ["full_attention"],
         ["x"] * 2000, {"": {}}, {"quant_method": "awq", "bits": 10**9}, {"rope_type": "yarn", "factor": math.nan})
    ),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.integers(1, 900).map(nested),
).map(deepcopy)  # fmt: skip


def paths(config: dict[str, Any], under: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for name, value in config.items():
        found.append((*under, name))
        if isinstance(value, dict):
            found += paths(value, (*under, name))
    return found


@st.composite
def changed_configs(draw: st.DrawFn) -> dict[str, Any]:
    config: dict[str, Any] = deepcopy(draw(st.sampled_from(CONFIGS)))
    for _ in range(draw(st.integers(1, 4))):
        *outer, name = draw(st.sampled_from(paths(config) or [("model_type",)]))
        holder: Any = config
        for step in outer:
            holder = holder[step]
        if draw(st.booleans()):
            holder[name] = draw(hostile)
        else:
            holder.pop(name, None)
    return config


def read_or_refused(path: Path) -> ModelFacts | None:
    try:
        return read_model(str(path))
    except OperatorError as error:
        message = str(error)
        assert printable(message) == message
        assert 20 < len(message) < 1000
        assert str(path.parent) in message or path.name in message
        return None


def judged(read: ModelFacts, plan: EngineSpec) -> Judgement:
    """The verdict, its sums exact and its figures finite."""
    judgement = judge(BOX, read, plan)
    memory = judgement.memory
    if memory is not None:
        assert all(part.total == 143771 << 20 for part in memory.per_gpu)
        assert math.isfinite(memory.max_concurrency)
        assert memory.kv_cache_tokens >= 0
        if judgement.state is not VerdictState.BLOCKED:
            assert memory.kv_cache_tokens > 0 or read.layer_kinds
            assert all(part.weights > 0 and part.kv_cache >= 0 for part in memory.per_gpu)
    for finding in judgement.findings:
        assert printable(finding.message) == finding.message
    return judgement


@fuzzed
@given(changed_configs(), st.sampled_from(PLACEMENTS))
def test_a_changed_config_is_refused_or_judged(tmp_path: Path, config: dict[str, Any], plan: EngineSpec) -> None:
    read = read_or_refused(write_config(tmp_path / "model", whole=config))
    if read is not None:
        assert read.parameters
        judged(read, plan)


@st.composite
def changed_headers(draw: st.DrawFn) -> dict[str, Any]:
    header: dict[str, Any] = {}
    offset = 0
    for name, shape in tiny_tensors().items():
        size = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(header)))
        match draw(st.sampled_from(("field", "entry", "gone", "renamed"))):
            case "field":
                if isinstance(header[name], dict):
                    header[name][draw(st.sampled_from(("dtype", "shape", "data_offsets")))] = draw(hostile)
            case "entry":
                header[name] = draw(hostile)
            case "gone":
                header.pop(name)
            case _:
                header[draw(st.text(max_size=8))] = header.pop(name)
    return header


@fuzzed
@given(changed_headers())
def test_changed_weight_headers_are_refused_or_counted(tmp_path: Path, header: dict[str, Any]) -> None:
    directory = write_config(tmp_path / "model")
    raw = json.dumps(header).encode()
    path = directory / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(raw)) + raw)
    os.truncate(path, 8 + len(raw) + (1 << 20))
    read = read_or_refused(directory)
    if read is not None:
        assert read.weight_bytes
        judged(read, PLACEMENTS[0])


@fuzzed
@given(
    st.integers(0, 3000),
    st.binary(min_size=1, max_size=12),
    st.sampled_from(("config.json", "model.safetensors", "model.safetensors.index.json")),
)
def test_damaged_bytes_are_refused_or_read(tmp_path: Path, place: int, damage: bytes, name: str) -> None:
    directory = write_config(tmp_path / "model")
    header = {"w": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}
    raw = json.dumps(header).encode()
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(8))
    index = directory / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": "model.safetensors"}}))
    path = directory / name
    whole = path.read_bytes()
    place %= len(whole)
    path.write_bytes(whole[:place] + damage + whole[place + len(damage) :])
    read = read_or_refused(directory)
    assert read is None or name == "config.json"  # a model of one small tensor is never whole


KEYS = ("block_count", "embedding_length", "attention.head_count", "attention.head_count_kv", "attention.key_length",
        "context_length", "expert_count", "expert_used_count", "attention.kv_lora_rank", "attention.sliding_window",
        "feed_forward_length", "rope.dimension_count", "vocab_size")  # fmt: skip


def gguf_long(key: str, value: int) -> bytes:
    return gguf_text(key) + struct.pack("<IQ", 10, value)


@fuzzed
@given(
    st.sampled_from(("llama", "gemma3", "deepseek2", "gpt-oss", "phi3", "unheard-of")),
    st.dictionaries(st.sampled_from(KEYS), st.one_of(st.integers(0, 4096), st.integers(0, (1 << 64) - 1)), max_size=5),
)
def test_gguf_figures_are_refused_or_judged(tmp_path: Path, family: str, figures: dict[str, int]) -> None:
    sound = {"block_count": 2, "embedding_length": 64, "attention.head_count": 4}
    values = [gguf_text("general.architecture") + struct.pack("<I", 8) + gguf_text(family)]
    values += [gguf_long(f"{family}.{key}", value) for key, value in (sound | figures).items()]
    values.append(gguf_words("tokenizer.ggml.tokens", ["a", "b"]))
    path = tmp_path / "hostile.gguf"
    layers = (sound | figures)["block_count"]
    names = ["token_embd.weight", *(f"blk.{layer}.attn_q.weight" for layer in range(min(layers, 4)))]
    tensors = [gguf_text(name) + struct.pack("<IQIQ", 1, 64, 1, 0) for name in names]
    path.write_bytes(gguf_header(values, tensors) + bytes(4096))
    read = read_or_refused(path)
    if read is not None:
        assert read.layers <= 4
        judged(read, PLACEMENTS[0])


@fuzzed
@given(changed_configs(), st.sampled_from(PLACEMENTS), st.integers(8, 200), st.integers(1, 200))
def test_more_memory_never_holds_less(
    tmp_path: Path, config: dict[str, Any], plan: EngineSpec, size: int, more: int
) -> None:
    read = read_or_refused(write_config(tmp_path / "model", whole=config))
    if read is None:
        return
    small, large = (
        Box(tuple(card(index, "NVIDIA H200", gib << 10, "9.0") for index in range(4))) for gib in (size, size + more)
    )
    limits: dict[str, Any] = {"max_model_len": 1024, "max_num_batched_tokens": 2048, "max_num_seqs": 64}
    plan = spec(*plan.placement.stages, **limits)
    before, after = memory_detail(small, read, plan, {}), memory_detail(large, read, plan, {})
    assert after.blocks >= before.blocks
    assert after.longest >= before.longest
    assert all(part.total == (size + more) * GIB for part in after.plan.per_gpu)


def test_parts_that_a_download_has_not_brought(tmp_path: Path) -> None:
    directory = write_config(tmp_path / "model")
    (directory / "model-00001-of-00002.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    with pytest.raises(OperatorError, match=r"model-00002-of-00002\.safetensors is not beside the other parts"):
        read_model(str(directory))
    (directory / "model-00002-of-00002.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    with pytest.raises(OperatorError, match="hold no tensor of any layer"):
        read_model(str(directory))


def test_weights_of_fewer_layers_than_the_config_has(tmp_path: Path) -> None:
    directory = write_config(tmp_path / "model", num_hidden_layers=TINY["num_hidden_layers"] + 2)
    write_safetensors(directory / "model.safetensors", tiny_tensors())
    with pytest.raises(OperatorError, match="no tensor of layer 2 of 4"):
        read_model(str(directory))


def test_pytorch_files_that_are_none(tmp_path: Path) -> None:
    directory = write_config(tmp_path / "model")
    path = directory / "pytorch_model.bin"
    path.symlink_to(tmp_path / "gone")
    with pytest.raises(OperatorError, match=r"pytorch_model\.bin can not be read"):
        read_model(str(directory))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OperatorError, match="no regular file"):
        read_model(str(directory))
    path.unlink()
    path.write_bytes(b"")
    with pytest.raises(OperatorError, match="is empty"):
        read_model(str(directory))
    path.rename(directory / "pytorch_model-00002-of-00003.bin")
    with pytest.raises(OperatorError, match=r"pytorch_model-00001-of-00003\.bin is not beside"):
        read_model(str(directory))


def test_folders_and_names_that_are_odd(tmp_path: Path) -> None:
    folder = tmp_path / "folder.gguf"
    folder.mkdir()
    with pytest.raises(OperatorError, match=r"has no config\.json"):
        read_model(str(folder))
    write_config(folder)
    assert read_model(str(folder)).layers == 2
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert read_or_refused(loop) is None
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    write_config(odd)
    with pytest.raises(OperatorError):
        read_model(str(odd))
