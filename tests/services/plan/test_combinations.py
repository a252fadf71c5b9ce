"""Several engines side by side."""

from dataclasses import replace

from gpudeck.services.box.types import GIB, Box, Link
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.proposals.combinations import combinations
from gpudeck.services.plan.types import EngineOptions
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings
from tests.services.rules.plans import MIXED, a100, h100, model, rtx4090, spec

ISLANDS = Box(
    tuple(h100(index) for index in range(8)),
    tuple(Link(a, b, "NV6") for half in (range(4), range(4, 8)) for a in half for b in half if a < b),
    name="two islands",
)


def test_the_pair_and_the_single_card_of_the_mixed_box_serve_side_by_side() -> None:
    best, *others = combinations(MIXED, model("llama-3.1-8b"), spec())
    assert others == []
    pair, single = best.proposals
    assert (pair[0].placement.stages, single[0].placement.stages) == (((1, 2),), ((0,),))
    assert best.why.startswith(
        "two engines: both A100s joined by NV12, the RTX 4090; each runs at its own cards' speed"
    )


def test_each_engine_has_a_name_a_port_and_cards_of_its_own_and_knows_the_others() -> None:
    asked = replace(spec(), name="chat", options=EngineOptions(max_model_len=4096, port=9000))
    taken = replace(spec((7,)), name="chat-2", options=EngineOptions(port=9001))
    around = Surroundings(neighbours=(taken,))
    for combination in combinations(ISLANDS, model("llama-3.1-8b"), asked, around=around):
        engines = [engine for engine, _, _ in combination.proposals]
        cards = [card for engine in engines for card in engine.placement.gpus]
        assert len(set(cards)) == len(cards)
        assert 7 not in cards
        assert [engine.name for engine in engines] == ["chat", "chat-3"]
        assert [engine.options.port for engine in engines] == [9000, 9002]
        for engine, judgement, _ in combination.proposals:
            beside = Surroundings(neighbours=(taken, *(other for other in engines if other is not engine)))
            assert judgement.state is not VerdictState.BLOCKED
            assert judge(ISLANDS, model("llama-3.1-8b"), engine, around=beside).state is judgement.state


def test_equal_cards_are_halved_along_their_links() -> None:
    (halves,) = combinations(ISLANDS, model("llama-3.1-8b"), spec())
    assert [engine.placement.stages for engine, _, _ in halves.proposals] == [((0, 1, 2, 3),), ((4, 5, 6, 7),)]
    assert halves.why.startswith("two engines, each four of eight H100s joined by NV6;")


def test_a_model_that_needs_all_cards_has_no_combination() -> None:
    assert combinations(MIXED, model("qwen2.5-32b"), spec()) == ()
    assert combinations(Box((a100(0),)), model("llama-3.1-8b"), spec()) == ()
    assert combinations(Box(()), model("llama-3.1-8b"), spec()) == ()


def test_cards_that_strangers_hold_are_left_out() -> None:
    box = Box((rtx4090(0), a100(1), a100(2)), (Link(1, 2, "NV12"),))
    (found,) = combinations(box, model("llama-3.1-8b"), spec(), {1: 30 * GIB})
    assert [engine.placement.stages for engine, _, _ in found.proposals] == [((2,),), ((0,),)]
