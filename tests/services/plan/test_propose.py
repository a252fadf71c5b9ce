"""Which placements are proposed, and in which order."""

import pytest

from gpudeck.services.box.types import GIB, Box, Link
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.propose import Objective, nearest, propose
from tests.services.rules.plans import CROSSED, MIXED, a100, h100, model, rtx4090, spec, t4

Stages = tuple[tuple[int, ...], ...]


def stages(box: Box, name: str, **asked: object) -> list[Stages]:
    return [proposal[0].placement.stages for proposal in propose(box, model(name), spec(), **asked)]  # type: ignore[arg-type]


def test_what_fits_one_card_gets_one_card() -> None:
    assert stages(MIXED, "llama-3.1-8b")[0] == ((1,),)


def test_the_bridged_cards_are_put_together() -> None:
    assert stages(CROSSED, "qwen2.5-32b")[0] == ((0, 2), (1, 3))
    assert stages(CROSSED, "qwen2.5-32b", tensor_parallel=2, pipeline_parallel=2) == [((0, 2), (1, 3))]


def test_the_mixed_box_as_its_owners_found() -> None:
    found = propose(MIXED, model("qwen2.5-32b"), spec())
    assert found[0][0].placement.stages == ((1, 2),)
    assert found[0][1].state is VerdictState.READY
    pipeline = next(proposal for proposal in found if len(proposal[0].placement.gpus) == 3)
    assert pipeline[0].placement.stages == ((1,), (2,), (0,))
    partition = pipeline[0].layer_partition
    assert partition is not None
    assert min(partition[:2]) > partition[2]
    assert "larger cards" in pipeline[2]


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
