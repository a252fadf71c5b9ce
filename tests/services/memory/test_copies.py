"""Copies share no KV cache: each has its own, and what they have together is told too."""

from typing import Any

from gpudeck.services.box.types import Box
from gpudeck.services.memory.plan import memory_detail, memory_plan
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.verdict import memory_words
from tests.services.rules.plans import a100, h100, judged, model, rules, spec

LLAMA = model("llama-3.1-8b")
BOX = Box((a100(0), a100(1), h100(2)))


def test_equal_copies_have_twice_the_cache_of_one() -> None:
    one, two = memory_plan(BOX, LLAMA, spec((0,)), {}), memory_plan(BOX, LLAMA, spec((0,), (1,), replicas=2), {})
    assert one.copies == ()
    assert (one.total_tokens, one.total_concurrency) == (one.kv_cache_tokens, one.max_concurrency)
    assert two.copies == (one.kv_cache_tokens, one.kv_cache_tokens)
    assert (two.kv_cache_tokens, two.total_tokens) == (one.kv_cache_tokens, 2 * one.kv_cache_tokens)
    assert two.total_concurrency == 2 * one.max_concurrency
    assert "a copy" not in memory_words(one, Glyphs.unicode())
    words = memory_words(two, Glyphs.unicode())
    assert f"{one.kv_cache_tokens:,} tokens a copy, {two.total_tokens:,} in 2" in words


def test_a_larger_cards_copy_fills_that_card() -> None:
    batch: Any = {"max_num_seqs": 64, "max_num_batched_tokens": 2048}  # what is left out follows the first card
    engine = spec((0,), (2,), replicas=2, **batch)
    small, large = (memory_plan(BOX, LLAMA, spec((card,), **batch), {}).kv_cache_tokens for card in (0, 2))
    detail = memory_detail(BOX, LLAMA, engine, {})
    assert detail.plan.copies == (small, large)
    assert detail.plan.kv_cache_tokens == small < large
    assert detail.blocks == min(detail.copy_blocks)
    # What is larger is not held back by what is smaller, and nothing says so.
    assert "memory-uneven" not in rules(judged(BOX, engine, LLAMA))
    assert all(part.total == BOX.gpus[part.gpu].memory_bytes for part in detail.plan.per_gpu)
