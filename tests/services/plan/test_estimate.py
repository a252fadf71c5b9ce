"""Speed estimates: what must never come out the wrong way round."""

from dataclasses import replace
from itertools import pairwise

import pytest

from gpudeck.services.box.types import Box, Link, Pcie
from gpudeck.services.memory.plan import memory_plan
from gpudeck.services.plan.estimate import Estimate, decode_estimate, read_share
from gpudeck.services.plan.speeds import all_reduce_seconds
from gpudeck.services.plan.types import EngineSpec
from tests.services.rules.plans import a100, h100, model, rtx4090, spec

KINDS = ("SYS", "NODE", "PHB", "PXB", "PIX", "NV1", "NV2", "NV4", "NV12", "NV18")
NAMES = ("llama-3.1-8b", "qwen2.5-32b-awq", "qwen3-30b-a3b", "deepseek-v2-lite", "gemma-3-12b-text")


def joined(kind: str, cards: int = 4, bandwidth: float | None = 2000.0) -> Box:
    gpus = tuple(replace(h100(index), memory_bandwidth_gbs=bandwidth) for index in range(cards))
    return Box(gpus, tuple(Link(a, b, kind) for a in range(cards) for b in range(a)))


def told(box: Box, engine: EngineSpec, name: str = "llama-3.1-8b") -> Estimate:
    estimate = decode_estimate(box, model(name), engine, memory_plan(box, model(name), engine, {}))
    assert estimate is not None
    return estimate


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stages", [((0,),), ((0, 1),), ((0,), (1,)), ((0, 1), (2, 3)), ((0, 1, 2, 3),)])
def test_more_bandwidth_is_never_slower(name: str, stages: tuple[tuple[int, ...], ...]) -> None:
    found = [told(joined("NV4", bandwidth=gbs), spec(*stages), name) for gbs in (300.0, 900.0, 2000.0, 8000.0)]
    for slower, faster in pairwise(found):
        assert slower.decode_tokens_per_s < faster.decode_tokens_per_s
        assert slower.throughput_tokens_per_s <= faster.throughput_tokens_per_s


@pytest.mark.parametrize("stages", [((0, 1),), ((0, 1), (2, 3)), ((0, 1, 2, 3),), ((0,), (1,))])
def test_a_nearer_link_is_never_slower(stages: tuple[tuple[int, ...], ...]) -> None:
    found = [told(joined(kind), spec(*stages)) for kind in KINDS]
    for slower, faster in pairwise(found):
        assert slower.decode_tokens_per_s <= faster.decode_tokens_per_s
        assert slower.throughput_tokens_per_s <= faster.throughput_tokens_per_s
    assert found[0].decode_tokens_per_s < found[-1].decode_tokens_per_s


@pytest.mark.parametrize("ranks", [2, 3, 4, 6, 8, 12, 16])
@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
def test_nvlink_never_reduces_slower_than_pcie(ranks: int, size: float) -> None:
    times = [all_reduce_seconds(ranks, kind, size) for kind in KINDS]
    assert times == sorted(times, reverse=True)


def test_tensor_parallel_pays_over_nvlink_and_stages_do_not_for_one_request() -> None:
    box = joined("NV18")
    one, two = told(box, spec((0,))), told(box, spec((0, 1)))
    four = told(box, spec((0, 1, 2, 3)))
    assert one.decode_tokens_per_s < two.decode_tokens_per_s < four.decode_tokens_per_s
    assert told(box, spec((0,), (1,))).decode_tokens_per_s < one.decode_tokens_per_s


def test_across_sockets_eight_ranks_are_no_faster_than_four() -> None:
    """Reported of PCIe boxes: vllm#16300."""
    box = Box(tuple(rtx4090(index) for index in range(8)))
    four, eight = told(box, spec((0, 1, 2, 3))), told(box, spec(tuple(range(8))))
    assert eight.decode_tokens_per_s <= four.decode_tokens_per_s


def test_copies_add_up_for_many_requests_and_do_nothing_for_one() -> None:
    box = joined("NV18")
    one, two = told(box, spec((0,))), told(box, spec((0,), (1,), replicas=2))
    assert two.decode_tokens_per_s == one.decode_tokens_per_s
    assert two.throughput_tokens_per_s == pytest.approx(2 * one.throughput_tokens_per_s, rel=1e-3)


def test_a_narrow_slot_slows_what_goes_through_it() -> None:
    wide = joined("PHB")
    narrow = replace(wide, gpus=tuple(replace(gpu, pcie=Pcie(gen=3, width=4)) for gpu in wide.gpus))
    assert told(narrow, spec((0, 1))).throughput_tokens_per_s < told(wide, spec((0, 1))).throughput_tokens_per_s


def test_the_slowest_card_sets_the_pace_of_its_group() -> None:
    box = Box((replace(a100(0), memory_bandwidth_gbs=1555.0), replace(a100(1), memory_bandwidth_gbs=500.0)))
    slow = replace(box, gpus=(replace(box.gpus[0], memory_bandwidth_gbs=500.0), box.gpus[1]))
    assert told(box, spec((0, 1))) == told(slow, spec((0, 1)))


def test_only_the_chosen_experts_are_read_and_more_of_them_with_more_requests() -> None:
    sparse = model("qwen3-30b-a3b")
    shares = [read_share(sparse, requests) for requests in (1, 4, 32, 1024)]
    assert shares == sorted(shares)
    assert shares[0] < 0.2
    assert shares[-1] == pytest.approx(1, abs=0.01)
    assert read_share(model("llama-3.1-8b"), 1) == 1


def test_the_basis_says_what_is_assumed() -> None:
    box = Box((a100(0), rtx4090(1)))
    basis = told(box, spec((0,), (1,))).basis
    assert "GPU 0, 1" in basis
    assert "assumed by compute capability (1555 GB/s for 8.0, 864 GB/s for 8.9)" in basis
    assert "one after the other" in basis
    assert "assumed by" not in told(joined("NV4"), spec((0, 1))).basis


def test_what_the_box_does_not_have_has_no_speed() -> None:
    box = joined("NV4", 2)
    engine = spec((0,), (5,))
    assert decode_estimate(box, model(), engine, memory_plan(box, model(), engine, {})) is None
