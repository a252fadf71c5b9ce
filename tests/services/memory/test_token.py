"""The arithmetic of a token's bytes, against the numbers of models that everybody knows."""

from dataclasses import replace

import pytest

from gpudeck.services.memory.settings import Settings
from gpudeck.services.memory.token import token_arithmetic
from gpudeck.services.models.types import Mla, ModelFacts

LLAMA = ModelFacts("llama", "/m", "LlamaForCausalLM", 32, 4096, 32, 8, 128, 14336, 128256, 131072, "bfloat16")


def settings(kv_cache_bytes: int = 2) -> Settings:
    return Settings(0.92, 8192, 8192, 256, 2, kv_cache_bytes, 16, False, True, False, None, False)


@pytest.mark.parametrize(
    ("model", "kv_bytes", "words"),
    [
        (LLAMA, 2, "2 × 8 KV heads × 128 × 2 B × 32 layers = 128 KiB a token"),
        (LLAMA, 1, "2 × 8 KV heads × 128 × 1 B × 32 layers = 64 KiB a token"),
        (replace(LLAMA, kv_heads=1), 2, "2 × 1 KV head × 128 × 2 B × 32 layers = 16 KiB a token"),
        (
            replace(LLAMA, layers=27, mla=Mla(512, 64, 128, 128)),
            2,
            "(512 + 64) × 2 B × 27 layers = 30.38 KiB a token",
        ),
        (
            replace(LLAMA, layers=6, layer_kinds=("sliding",) * 5 + ("full",), sliding_window=1024),
            2,
            "2 × 8 KV heads × 128 × 2 B × 1 full layer = 4 KiB a token; 5 sliding layers keep 1,024 tokens at most",
        ),
        (
            replace(LLAMA, layers=2, layer_kinds=("sliding",) * 2, sliding_window=4096),
            2,
            "2 × 8 KV heads × 128 × 2 B × 2 layers = 8 KiB a token; they keep 4,096 tokens at most",
        ),
        (replace(LLAMA, layers=2, layer_kinds=("state", "state")), 2, ""),
    ],
)
def test_the_sum_is_written_out(model: ModelFacts, kv_bytes: int, words: str) -> None:
    assert token_arithmetic(model, settings(kv_bytes)) == words


def test_packed_entries_are_told_by_their_size() -> None:
    packed = replace(settings(1), kv_cache_dtype="nvfp4")
    assert token_arithmetic(replace(LLAMA, layers=32), packed) == "1152 B (nvfp4) × 32 layers = 36 KiB a token"
