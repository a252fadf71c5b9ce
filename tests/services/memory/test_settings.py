"""Options behind -- that decide memory, and what differs between vLLM's versions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpudeck.services.box.types import GIB, MIB, Box
from gpudeck.services.memory.kv_cache import layer_token_bytes
from gpudeck.services.memory.lora import Lora, adapter_elements, lora_of
from gpudeck.services.memory.matrices import Matrix, rounding
from gpudeck.services.memory.plan import MemoryDetail, memory_detail
from gpudeck.services.memory.settings import settings_for
from gpudeck.services.models.read import read_model
from gpudeck.services.models.types import ModelFacts
from tests.services.models.files import write_config
from tests.services.models.published import PUBLISHED
from tests.services.rules.plans import card, model, spec

LLAMA = model()
BOX = Box(tuple(card(index, "NVIDIA H200", 143771, "9.0") for index in range(2)))


def detail(
    *extra: str, facts: ModelFacts = LLAMA, version: str = "0.24.0", stages: int = 1, **options: Any
) -> MemoryDetail:
    cards = tuple((index,) for index in range(stages))
    return memory_detail(BOX, facts, spec(*cards, extra=extra, **options), {}, version)


def test_adapters_take_what_a_real_engine_took() -> None:
    extra = ("--enable-lora", "--max-loras", "4", "--max-lora-rank", "64")
    assert lora_of(extra) == Lora(4, 64)
    assert lora_of(("--enable-lora",)) == Lora(1, 16)
    assert lora_of((*extra, "--no-enable-lora")) is None
    size = 2 * adapter_elements(LLAMA, Lora(4, 64), 32, 1, ends=2)
    assert size == pytest.approx(1443 * MIB, rel=0.03)
    assert detail(*extra).ranks[0].weights - detail().ranks[0].weights == size


def test_matrices_are_rounded_as_the_allocator_does() -> None:
    def rest(mib: float) -> int:
        return rounding(iter((Matrix(int(mib * MIB) // 2, 1),)), 2, 2)

    assert rest(24.5) == 1.5 * MIB
    assert rest(26) == 0
    assert rest(16.625) == 0  # what is left of a smaller block is split off and used
    assert rest(11.5) == 0.5 * MIB
    assert rest(4.5) == 0


def test_weights_kept_in_the_hosts_memory() -> None:
    assert detail().ranks[0].weights - detail("--cpu-offload-gb", "4").ranks[0].weights == 4 * GIB
    for wrong in ("-1", "nan", "inf", "1e30", "x", ""):
        assert detail("--cpu-offload-gb", wrong).ranks[0].weights == detail().ranks[0].weights


def test_blocks_and_cache_that_are_given() -> None:
    assert detail("--num-gpu-blocks-override", "100").plan.kv_cache_tokens == 1600
    given = detail("--kv-cache-memory-bytes", str(4 * GIB))
    assert given.plan.kv_cache_tokens == 4 * GIB // (128 << 10)


def test_a_cache_type_of_its_own() -> None:
    assert settings_for(LLAMA, spec((0,), dtype="float32"), None).kv_cache_bytes == 4
    assert settings_for(LLAMA, spec((0,), dtype="float32", kv_cache_dtype="bfloat16"), None).kv_cache_bytes == 2


def test_an_encoder_that_is_not_used_is_not_profiled() -> None:
    images = model("qwen2.5-vl-7b")
    usual = detail(facts=images).ranks[0].overhead.activation
    for words in (("--limit-mm-per-prompt", '{"image": 0, "video": 0}'), ("--language-model-only",)):
        assert usual - detail(*words, facts=images).ranks[0].overhead.activation > GIB
    for limit in ('{"image": 1, "video": 0}', "{", "[]", "{}"):
        assert detail("--limit-mm-per-prompt", limit, facts=images).ranks[0].overhead.activation == usual


def test_decompressed_keys_and_values_of_mla() -> None:
    """8 × the length, 65,536 tokens at most, for 16 heads of 128 + 128."""
    deepseek = model("deepseek-v2-lite")

    def peak(length: int) -> int:
        return (
            detail(facts=deepseek, max_model_len=length, max_num_seqs=64, max_num_batched_tokens=512)
            .ranks[0]
            .overhead.activation
        )

    assert peak(163840) == peak(8192)
    assert peak(8192) - peak(4096) == 32768 * 16 * 256 * 2


def test_from_032_on_scheduling_ahead_counts_for_sliding_windows() -> None:
    gemma = model("gemma-3-12b-text")
    usual = {"facts": gemma, "max_model_len": 32768, "max_num_batched_tokens": 8192}
    older, newer = detail(**usual), detail(**usual, version="0.32.0")  # type: ignore[arg-type]
    in_step = detail("--no-async-scheduling", **usual, version="0.32.0")  # type: ignore[arg-type]
    assert older.needed == in_step.needed == 2048 + 5 * (576 + 1)
    assert newer.needed == 2048 + 5 * (-(-(1023 + 16384) // 16) + 1)
    staged = detail(**usual, version="0.32.0", stages=2)  # type: ignore[arg-type]
    assert staged.needed == 2048 + 5 * (-(-(1023 + 24576) // 16) + 1)


def test_from_032_on_every_model_has_the_second_runner() -> None:
    qwen = model("qwen2.5-7b")
    assert not settings_for(qwen, spec((0,)), None, "0.24.0").second_runner
    newer = settings_for(qwen, spec((0,)), None, "0.32.0")
    assert newer.second_runner
    assert newer.graphs_budgeted
    older = replace(spec((0,)), environment=(("VLLM_USE_V2_MODEL_RUNNER", "0"),))
    assert not settings_for(qwen, older, None, "0.32.0").second_runner


def test_a_sparse_index_is_kept_beside_each_entry(tmp_path: Path) -> None:
    """DeepSeek V3.2: 132 bytes more a token and layer, and 656 instead of 576 where the cache is fp8."""
    deepseek = next(one for one in PUBLISHED if one.name == "DeepSeek-V3").config
    facts = read_model(
        str(write_config(tmp_path, whole=deepseek | {"index_head_dim": 128, "model_type": "deepseek_v32"}))
    )
    for dtype, size in ((None, 576 * 2 + 132), ("fp8", 656 + 132)):
        assert layer_token_bytes(facts, settings_for(facts, spec((0,), kv_cache_dtype=dtype), None), 8) == size
