"""A verdict says which of its cards and bridges are not there."""

from gpudeck.services.plan.types import Placement
from gpudeck.services.plan.what_if import Addition, NewBridge, NewCard, with_additions
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings
from tests.services.rules.plans import MIXED, model, spec


def told(additions: tuple[Addition, ...], *stages: tuple[int, ...]) -> list[str]:
    box, plan = with_additions(MIXED, additions), spec(*stages)
    assert plan.placement == Placement(stages)
    found = judge(box, model("llama-3.2-1b"), plan, around=Surroundings(additions=additions)).findings
    return [finding.message for finding in found if finding.rule == "what-if"]


def test_a_card_or_a_bridge_counts_only_where_the_plan_uses_it() -> None:
    card, bridge = NewCard(MIXED.gpus[1], 1), NewBridge(0, 1)
    assert told((card,), (1,)) == []
    assert told((card,), (3,)) == [f"Not in this box: GPU 3 (what-if {MIXED.gpus[1].name})."]
    assert told((bridge,), (1, 2)) == []
    assert told((bridge, bridge), (1,), (0,)) == ["Not in this box: the bridge between GPU 0 and GPU 1."]
    assert len(told((card, bridge), (0,), (1,), (3,))[0].split(" and ")) == 3
    assert told((), (0,)) == []
