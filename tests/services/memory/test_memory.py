"""The memory model's parts, by hand-made sums."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.box.types import GIB, MIB, Box
from gpudeck.services.memory.balance import balanced_partition
from gpudeck.services.memory.kv_cache import blocks_needed, cache_groups, layer_token_bytes, longest_request
from gpudeck.services.memory.overhead import driver_reserve
from gpudeck.services.memory.partition import default_partition
from gpudeck.services.memory.plan import memory_detail, memory_plan
from gpudeck.services.memory.settings import settings_for
from gpudeck.services.memory.weights import StageShare, tensor_bytes
from gpudeck.services.models.types import ModelFacts
from tests.services.rules.plans import MIXED, a100, card, h100, model, spec

LLAMA = model()


def weights_of(
    facts: ModelFacts, *, tensor_parallel: int = 1, stages: int = 1, quantization: str | None = None
) -> list[int]:
    """Weights of a rank of each stage."""
    split = default_partition(facts.layers, stages)
    settings = settings_for(facts, spec((0,)), None)
    found = []
    for stage in range(stages):
        start = sum(split[:stage])
        share = StageShare(start, start + split[stage], tensor_parallel, stage == 0, stage == stages - 1)
        found.append(tensor_bytes(facts, settings, quantization, share))
    return found


@pytest.mark.parametrize(
    ("layers", "stages", "split"),
    [
        (32, 1, (32,)),
        (32, 3, (11, 11, 10)),
        (61, 4, (15, 15, 16, 15)),
        (33, 2, (17, 16)),
        (28, 3, (9, 10, 9)),
        (2, 4, (0, 1, 1, 0)),
    ],
)
def test_vllms_own_split_of_layers(layers: int, stages: int, split: tuple[int, ...]) -> None:
    assert default_partition(layers, stages) == split


@given(st.integers(1, 200), st.integers(1, 16))
def test_every_layer_is_on_one_stage(layers: int, stages: int) -> None:
    assert sum(default_partition(layers, stages)) == layers


def test_one_card_holds_every_parameter() -> None:
    assert weights_of(LLAMA) == [8_030_261_248 * 2]


def test_tensor_parallelism_splits_all_but_the_norms() -> None:
    norms = (32 * 2 + 1) * 4096 * 2
    assert weights_of(LLAMA, tensor_parallel=2) == [(8_030_261_248 * 2 - norms) // 2 + norms]


def test_k_and_v_are_copied_beyond_one_head_a_rank() -> None:
    qwen = model("qwen2.5-0.5b", tied_embeddings=True)
    two, fourteen = weights_of(qwen, tensor_parallel=2)[0], weights_of(qwen, tensor_parallel=14)[0]
    kv_of_one_rank = 24 * 2 * 896 * 64 * 2
    biases_and_norms = (24 * (2 * 896 + 14 * 64 + 2 * 2 * 64) + 896) * 2
    split = (494_032_768 * 2 - 2 * kv_of_one_rank - biases_and_norms) // 14
    assert fourteen == pytest.approx(split + kv_of_one_rank + biases_and_norms, rel=0.001)
    assert two > fourteen


def test_the_vocabulary_lies_on_the_end_stages() -> None:
    first, middle, last = weights_of(replace(LLAMA, layers=30, weights=LLAMA.weights), stages=3)
    embedding = 128256 * 4096 * 2
    assert first - middle == embedding
    assert last - middle == embedding + 4096 * 2
    tied = model("llama-3.2-1b")
    first, last = weights_of(tied, stages=2)
    # A tied embedding is on both, since the head is the embedding.
    assert last - first == 2048 * 2


def test_online_quantization_shrinks_linear_layers_only() -> None:
    plain, fp8 = weights_of(LLAMA)[0], weights_of(LLAMA, quantization="fp8")[0]
    vocabulary = 2 * 128256 * 4096 * 2
    assert fp8 == pytest.approx((plain - vocabulary) / 2 + vocabulary, rel=0.001)


@pytest.mark.parametrize(
    ("name", "tensor_parallel", "kv_dtype", "size"),
    [
        ("llama-3.1-8b", 1, None, 2 * 8 * 128 * 2),
        ("llama-3.1-8b", 4, None, 2 * 2 * 128 * 2),
        ("llama-3.1-8b", 16, None, 2 * 1 * 128 * 2),
        ("llama-3.1-8b", 1, "fp8", 2 * 8 * 128),
        ("falcon-7b", 1, None, 2 * 1 * 64 * 2),
        ("deepseek-v2-lite", 1, None, 576 * 2),
        ("deepseek-v2-lite", 8, None, 576 * 2),
        ("gemma-3-12b-text", 1, None, 2 * 8 * 256 * 2),
        ("llama-3.1-8b", 1, "nvfp4", 2 * 8 * (64 + 8)),
        ("llama-3.1-8b", 2, "int8_per_token_head", 2 * 4 * (128 + 4)),
        ("llama-3.1-8b", 1, "int4_per_token_head", 2 * 8 * (64 + 4)),
        ("deepseek-v2-lite", 1, "fp8_ds_mla", 656),
    ],
)
def test_bytes_of_a_token_in_a_layer(name: str, tensor_parallel: int, kv_dtype: str | None, size: int) -> None:
    facts = model(name)
    settings = settings_for(facts, spec((0,), kv_cache_dtype=kv_dtype), None)
    assert layer_token_bytes(facts, settings, tensor_parallel) == size


# Layers in each group as vLLM itself printed them.
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("llama-3.1-8b", [32]),
        ("mistral-7b-v0.1", [32]),
        ("gemma-2-9b", [21, 21]),
        ("gemma-3-12b-text", [8] * 6),
        ("gpt-oss-20b", [12, 12]),
        ("granite-4.0-h-tiny", [4]),
    ],
)
def test_groups_of_layers(name: str, sizes: list[int]) -> None:
    assert [len(group.layers) for group in cache_groups(model(name))] == sizes


def test_a_sliding_layer_holds_a_window_and_not_the_length() -> None:
    groups = cache_groups(model("gemma-3-12b-text"))
    assert blocks_needed(groups, 131072, 8192, 16) == 8192 + 5 * (-(-(1023 + 8192) // 16) + 1)
    assert blocks_needed(groups, 160, 8192, 16) == 10 + 5 * 11


@given(
    st.integers(0, 3000), st.integers(1, 40_000), st.sampled_from(("llama-3.1-8b", "gemma-3-12b-text", "gpt-oss-20b"))
)
def test_the_longest_request_fits_and_the_next_does_not(blocks: int, limit: int, name: str) -> None:
    groups = cache_groups(model(name))
    longest = longest_request(groups, blocks, 2048, 16, limit)
    if longest:
        assert blocks_needed(groups, longest, 2048, 16) <= blocks
    if longest < limit:
        assert blocks_needed(groups, longest + 1, 2048, 16) > blocks


def test_the_drivers_reserve() -> None:
    assert driver_reserve(card(0, "NVIDIA H200", 143771, "9.0")) == pytest.approx(615 * MIB, rel=0.03)
    assert driver_reserve(card(0, "NVIDIA GeForce RTX 4090", 24564, "8.9")) == pytest.approx(330 * MIB, rel=0.03)
    assert driver_reserve(replace(a100(0), memory_reserved_bytes=1 << 29)) == 1 << 29


def test_scheduler_defaults_follow_the_first_card() -> None:
    open_spec = spec((0,))
    assert settings_for(LLAMA, open_spec, a100(0)).max_num_batched_tokens == 2048
    assert settings_for(LLAMA, open_spec, h100(0)).max_num_batched_tokens == 8192
    assert settings_for(LLAMA, open_spec, card(0, "NVIDIA A100-SXM4-80GB", 81920, "8.0")).max_num_seqs == 256
    assert settings_for(LLAMA, open_spec, card(0, "NVIDIA B200", 183359, "10.0")).max_num_batched_tokens == 16384


def test_all_ranks_take_the_least_number_of_blocks() -> None:
    plan = memory_plan(MIXED, LLAMA, spec((1,), (0,)), {})
    alone = memory_plan(MIXED, LLAMA, spec((0,), (1,)), {})
    large, small = plan.gpu(1), plan.gpu(0)
    assert large is not None
    assert small is not None
    assert large.kv_cache == small.kv_cache
    assert large.free > small.free + 10 * GIB
    assert alone.kv_cache_tokens > 0


def test_used_memory_is_shown_and_does_not_count_twice() -> None:
    empty = memory_plan(MIXED, LLAMA, spec((1,)), {})
    shared = memory_plan(MIXED, LLAMA, spec((1,)), {1: GIB})
    assert empty.kv_cache_tokens == shared.kv_cache_tokens
    assert (shared.per_gpu[0].other, shared.per_gpu[0].free) == (GIB, empty.per_gpu[0].free - GIB)


def best_partition(box: Box, facts: ModelFacts, stages: tuple[tuple[int, ...], ...]) -> int:
    """The most blocks over all partitions, by trying every one."""
    count = len(stages)

    def partitions(left: int, parts: int) -> list[tuple[int, ...]]:
        if parts == 1:
            return [(left,)]
        return [(here, *rest) for here in range(1, left - parts + 2) for rest in partitions(left - here, parts - 1)]

    return max(
        memory_detail(box, facts, spec(*stages, partition=partition), {}).blocks
        for partition in partitions(facts.layers, count)
    )


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen2.5-32b-awq", "llama-3.2-1b"])
@pytest.mark.parametrize("stages", [((1,), (2,), (0,)), ((0,), (1,)), ((1,), (0,), (2,))])
def test_the_balanced_partition_is_the_best_of_all(name: str, stages: tuple[tuple[int, ...], ...]) -> None:
    facts = model(name)
    partition = balanced_partition(MIXED, facts, spec(*stages))
    reached = memory_detail(MIXED, facts, spec(*stages, partition=partition), {}).blocks
    assert reached == best_partition(MIXED, facts, stages)


def test_where_no_layer_can_move_vllms_own_split_is_kept() -> None:
    box = Box((h100(0), h100(1)))
    partition = balanced_partition(box, replace(LLAMA, layers=2), spec((0,), (1,)))
    assert partition is None


def test_experts_are_dealt_out_over_all_copies() -> None:
    """Qwen3-30B-A3B in two copies: without expert parallelism each has 128 experts a layer, with it 64."""
    box = Box((h100(0), h100(1)))
    qwen = model("qwen3-30b-a3b")
    alone = memory_detail(box, qwen, spec((0,), (1,), replicas=2), {}).ranks
    dealt = memory_detail(box, qwen, spec((0,), (1,), replicas=2, extra=("--enable-expert-parallel",)), {}).ranks
    experts = 48 * 128 * 3 * 2048 * 768 * 2
    assert [rank.weights for rank in alone] == [alone[0].weights] * 2
    assert alone[0].weights - dealt[0].weights == pytest.approx(experts / 2, rel=0.01)
    single = memory_detail(box, qwen, spec((0,), extra=("--enable-expert-parallel",)), {}).ranks
    assert single[0].weights == alone[0].weights
