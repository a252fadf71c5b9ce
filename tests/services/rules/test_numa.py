"""NUMA nodes inside a TP group, where the driver says SYS for every pair."""

from dataclasses import replace

from gpudeck.services.box.types import Box, Link
from gpudeck.services.plan.changes import apply
from gpudeck.services.plan.types import Placement
from tests.services.rules.plans import judged, model, rtx3090, rules, spec

# As on two-socket boxes whose matrix says SYS everywhere: only the affinity shows the halves.
HALVES = Box(tuple(replace(rtx3090(index), numa=str(index % 2)) for index in range(4)))
SMALL = model("llama-3.2-1b")


def test_a_pair_across_the_nodes_names_the_pair_on_one() -> None:
    engine = spec((0, 1), (2, 3))
    judgement = judged(HALVES, engine, SMALL)
    finding = next(finding for finding in judgement.findings if finding.rule == "numa-crossing")
    assert finding.severity.value == "warning"
    assert finding.fix == "Put GPU 0 and GPU 2 into one stage."
    assert finding.change is not None
    mended = apply(finding.change, engine)
    assert mended.placement == Placement(((0, 2), (1, 3)))
    assert not rules(judged(HALVES, mended, SMALL))


def test_a_group_larger_than_a_node_is_only_told() -> None:
    found = rules(judged(HALVES, spec((0, 1, 2, 3)), SMALL))
    assert found["numa-spanned"] == "info"
    assert "numa-crossing" not in found


def test_nvlink_does_not_pass_the_processors() -> None:
    linked = replace(HALVES, links=(Link(0, 1, "NV4"),))
    assert not rules(judged(linked, spec((0, 1)), SMALL))
    assert not rules(judged(HALVES, spec((0,), (1,)), SMALL))
