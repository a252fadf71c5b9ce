"""Which placements are proposed, and in which order."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.services.box.boxfile import load_box_file
from gpudeck.services.box.types import GIB, Box, Link, Modes, Reading
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.propose import Objective, nearest, propose
from gpudeck.services.plan.types import EngineOptions
from gpudeck.services.rules.surroundings import Surroundings
from tests.services.rules.plans import CROSSED, MIXED, a100, h100, model, rtx3090, rtx4090, spec, t4

BOXES = Path(__file__).parents[2] / "data" / "boxes"

Stages = tuple[tuple[int, ...], ...]


def stages(box: Box, name: str, *, length: int = 4096, **asked: object) -> list[Stages]:
    engine = spec(max_model_len=length)
    return [proposal[0].placement.stages for proposal in propose(box, model(name), engine, **asked)]  # type: ignore[arg-type]


def test_what_fits_one_card_gets_one_card() -> None:
    assert stages(MIXED, "llama-3.1-8b")[0] == ((1,),)


def test_the_bridged_cards_are_put_together() -> None:
    assert stages(CROSSED, "qwen2.5-32b")[0] == ((0, 2), (1, 3))
    assert stages(CROSSED, "qwen2.5-32b", tensor_parallel=2, pipeline_parallel=2) == [((0, 2), (1, 3))]


@pytest.mark.parametrize("objective", [Objective.CONTEXT, Objective.LATENCY])
def test_the_mixed_box_as_its_owners_found(objective: Objective) -> None:
    found = propose(MIXED, model("qwen2.5-32b"), spec(), objective=objective)
    assert found[0][0].placement.stages == ((1, 2),)
    assert found[0][1].state is VerdictState.READY
    assert found[0][2] == "both A100s, joined by NV12"
    pipeline = next(proposal for proposal in found if len(proposal[0].placement.gpus) == 3)
    partition, placement = pipeline[0].layer_partition, pipeline[0].placement
    assert partition is not None
    layers = dict(zip((stage[0] for stage in placement.stages), partition, strict=True))
    assert placement.stages[0] != (0,)
    assert min(layers[1], layers[2]) > layers[0]
    assert "larger cards" in pipeline[2]


def test_three_tensor_parallel_ranks_on_the_mixed_box_are_refused_with_the_reason() -> None:
    assert propose(MIXED, model("qwen2.5-32b"), spec(), tensor_parallel=3, replicas=1) == ()
    told = nearest(MIXED, model("qwen2.5-32b"), spec(), tensor_parallel=3, replicas=1)
    assert "Total number of attention heads (40) must be divisible by tensor parallel size (3)" in told.message


def test_cards_of_two_capabilities_make_a_group_only_where_nothing_else_would_start() -> None:
    box = Box((rtx3090(0), rtx4090(1)))
    assert all(len(stage) == 1 for group in stages(box, "llama-3.1-8b") for stage in group)
    (asked,) = propose(box, model("llama-3.1-8b"), spec(), tensor_parallel=2)
    assert asked[0].placement.stages == ((0, 1),)
    assert asked[1].state is VerdictState.CAUTION


def test_copies_are_weighed_against_one_large_group() -> None:
    """A model that fits one card: copies run more requests at once than one engine may, by max-num-seqs."""
    box = Box(tuple(a100(index) for index in range(8)), tuple(Link(a, b, "NV12") for a in range(8) for b in range(a)))
    found = propose(box, model("llama-3.2-1b"), spec(max_model_len=2048), objective=Objective.CONCURRENCY)
    assert found[0][0].placement.replicas > 1
    assert {(len(p[0].placement.stages[0]), p[0].placement.replicas) for p in found} >= {(1, 8), (4, 2)}
    fixed = propose(box, model("llama-3.2-1b"), spec(max_model_len=2048), replicas=1, objective=Objective.CONCURRENCY)
    assert {proposal[0].placement.replicas for proposal in fixed} == {1}


def test_the_longest_context_that_fits_is_taken_where_none_is_asked_for() -> None:
    box = Box((rtx4090(0),))
    (proposal,) = propose(box, model("llama-3.1-8b"), spec(max_model_len=None))
    chosen = proposal[0].options.max_model_len
    assert chosen is not None
    assert 8192 < chosen < 131072
    assert f"{chosen:,} of the model's 131,072 tokens" in proposal[2]
    assert propose(box, model("llama-3.1-8b"), spec(max_model_len=131072)) == ()


def test_a_length_that_vllm_is_to_fit_counts_as_the_models_own() -> None:
    auto, own = (stages(MIXED, "qwen2.5-32b", length=length, objective=Objective.CONCURRENCY) for length in (-1, 32768))
    assert auto[0] == own[0]


def test_cards_of_neighbours_are_left_alone() -> None:
    around = Surroundings(neighbours=(replace(spec((1,)), name="other", options=EngineOptions(port=9000)),))
    found = propose(MIXED, model("llama-3.1-8b"), spec(), around=around)
    assert found[0][0].placement.stages == ((2,),)
    assert all(1 not in proposal[0].placement.gpus for proposal in found)


@pytest.mark.parametrize("objective", Objective)
def test_boxes_too_old_for_vllm_are_refused_with_that_reason(objective: Objective) -> None:
    box = load_box_file(BOXES / "01-v100-16g-8x-dgx1-cube-mesh.json").box
    assert propose(box, model("llama-3.1-8b"), spec(), objective=objective) == ()
    assert "vLLM's kernels begin at 7.5" in nearest(box, model("llama-3.1-8b"), spec()).message


def test_a_tp_group_never_mixes_capabilities_and_the_lowest_stands_first() -> None:
    box = Box((rtx4090(0), a100(1), rtx4090(2), a100(3)))
    for group in stages(box, "llama-3.1-8b"):
        for stage in group:
            assert len({box.gpus[card].compute_capability for card in stage}) == 1
        capabilities = [box.gpus[stage[0]].compute_capability for stage in group]
        assert capabilities[0] == min(capabilities)


def test_occupied_cards_are_left_out() -> None:
    found = propose(MIXED, model("llama-3.1-8b"), spec(), {1: 30 * GIB})
    assert found[0][0].placement.stages == ((2,),)
    assert all(1 not in proposal[0].placement.gpus for proposal in found)


def test_copies_take_cards_of_their_own() -> None:
    box = Box(tuple(h100(index) for index in range(4)), tuple(Link(a, b, "NV18") for a in range(4) for b in range(a)))
    found = propose(box, model("llama-3.1-8b"), spec(), tensor_parallel=2, replicas=2)
    assert found[0][0].placement.stages == ((0, 1), (2, 3))
    assert found[0][0].placement.replicas == 2
    assert "two copies, each on two cards" in found[0][2]


def test_objectives_differ() -> None:
    box = Box(tuple(h100(index) for index in range(4)), tuple(Link(a, b, "NV18") for a in range(4) for b in range(a)))
    assert stages(box, "llama-3.1-8b", objective=Objective.CONTEXT)[0] == ((0,),)
    assert stages(box, "llama-3.1-8b", objective=Objective.LATENCY)[0] == ((0, 1, 2, 3),)
    most = stages(box, "llama-3.1-8b", objective=Objective.CONCURRENCY)[0]
    assert sorted(gpu for stage in most for gpu in stage) == [0, 1, 2, 3]


def test_the_nearest_is_the_one_that_lacks_least() -> None:
    told = nearest(CROSSED, model("llama-3.1-70b"), spec()).message.split(" is blocked")[0]
    assert all(card in told.rpartition("GPUs ")[2] for card in "0123"), told


@pytest.mark.parametrize(
    ("box", "name", "asked", "part"),
    [
        (MIXED, "llama-3.1-70b", {}, "weights"),
        (MIXED, "llama-3.1-8b", {"tensor_parallel": 3}, "must be divisible by tensor parallel size (3)"),
        (Box((t4(0),)), "llama-3.1-8b", {"pipeline_parallel": 2}, "too few cards for TP any × PP 2"),
        (Box(()), "llama-3.1-8b", {}, "too few cards"),
        (CROSSED, "llama-3.1-8b", {"tensor_parallel": 3}, "must be divisible by tensor parallel size (3)"),
    ],
)
def test_why_nothing_is_proposed(box: Box, name: str, asked: dict[str, int], part: str) -> None:
    assert propose(box, model(name), spec(), **asked) == ()  # type: ignore[arg-type]
    finding = nearest(box, model(name), spec(), **asked)  # type: ignore[arg-type]
    assert part in finding.message


@pytest.mark.parametrize("objective", Objective)
def test_of_equal_cards_those_without_a_screen_are_taken(objective: Objective) -> None:
    box = Box(tuple(rtx4090(index) for index in range(3)))
    around = Surroundings(readings=(Reading(0, modes=Modes("default", True, True)), Reading(1), Reading(2)))
    found = propose(box, model("llama-3.1-8b"), spec(), objective=objective, replicas=1, around=around)
    for proposal in found:
        cards = proposal[0].placement.gpus
        assert 0 not in cards or len(cards) == 3, cards
    assert {len(proposal[0].placement.gpus) for proposal in found} >= {1, 2}
