"""The mixes that operators ask about, in one TP group and as pipeline stages, each with a decided severity."""

from dataclasses import replace

import pytest

from gpudeck.services.box.types import Accelerator, Box, Gpu, Link
from gpudeck.services.plan.changes import apply
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.judge import judge
from tests.services.rules.plans import a100, card, judged, l40s, model, rtx3090, rtx4090, rules, spec, t4

SMALL = model("llama-3.2-1b")
TP, PP = spec((0, 1)), spec((0,), (1,))
LIKE = "tp-mixed-architecture"
STAGES = "pp-mixed-architecture"
KERNELS = "first-card-decides"
ATTENTION = "attention-backend-first-card"


@pytest.mark.parametrize(
    ("cards", "in_tp", "in_pp"),
    [
        ((a100(0), a100(1)), {}, {}),
        ((a100(0), l40s(1)), {LIKE: "warning"}, {STAGES: "warning"}),
        ((l40s(0), a100(1)), {LIKE: "warning", KERNELS: "warning"}, {STAGES: "warning", KERNELS: "warning"}),
        ((a100(0), rtx4090(1)), {LIKE: "warning"}, {STAGES: "warning"}),
        ((rtx4090(0), a100(1)), {LIKE: "warning", KERNELS: "warning"}, {STAGES: "warning", KERNELS: "warning"}),
        ((rtx3090(0), rtx4090(1)), {LIKE: "warning"}, {STAGES: "warning"}),
        ((rtx4090(0), rtx3090(1)), {LIKE: "warning", KERNELS: "warning"}, {STAGES: "warning", KERNELS: "warning"}),
        ((a100(0), t4(1)), {LIKE: "warning", ATTENTION: "error"}, {STAGES: "warning", ATTENTION: "error"}),
        ((t4(0), a100(1)), {LIKE: "warning"}, {STAGES: "warning"}),
    ],
)
def test_two_cards(cards: tuple[Gpu, Gpu], in_tp: dict[str, str], in_pp: dict[str, str]) -> None:
    box = Box(cards)
    of_mixing = {LIKE, STAGES, KERNELS, ATTENTION}
    for engine, expected in ((TP, in_tp), (PP, in_pp)):
        found = rules(judged(box, engine, SMALL))
        assert {rule: severity for rule, severity in found.items() if rule in of_mixing} == expected


def test_copies_do_not_wait_for_each_other() -> None:
    """Copies on cards of two capabilities are no pipeline; a pipeline within one of the copies is."""
    box = Box((a100(0), rtx4090(1), a100(2), rtx4090(3)))
    assert STAGES not in rules(judged(box, spec((0,), (1,), replicas=2), SMALL))
    assert STAGES not in rules(judged(box, spec((0,), (2,), (1,), (3,), replicas=2), SMALL))
    assert STAGES in rules(judged(box, spec((0,), (2,), (0,), (1,), replicas=2), SMALL))
    assert "pp-mixed-memory" not in rules(judged(box, spec((0,), (1,), replicas=2), SMALL))
    told = rules(judged(box, spec((0,), (1,), (2,), (3,), replicas=2), SMALL))
    assert told.keys() & {"pp-mixed-memory", "memory-uneven"}


@pytest.mark.parametrize("engine", [TP, PP])
def test_nvidia_beside_another_makers_cards_is_only_told(engine: EngineSpec) -> None:
    other = Accelerator("0000:c1:00.0", "AMD", "Instinct MI210")
    box = Box((a100(0), a100(1)), (Link(0, 1, "NV12"),), accelerators=(other,))
    found = rules(judge(box, SMALL, engine))
    assert found == {"other-accelerators": "info"}


@pytest.mark.parametrize("engine", [TP, PP])
@pytest.mark.parametrize("cards", [(rtx4090(0), a100(1)), (rtx4090(0), rtx3090(1)), (a100(0), t4(1))])
def test_the_order_that_was_given_is_kept_and_the_better_one_is_its_fix(
    cards: tuple[Gpu, Gpu], engine: EngineSpec
) -> None:
    box = Box(cards)
    judgement = judged(box, engine, SMALL)
    finding = next(finding for finding in judgement.findings if finding.rule in (KERNELS, ATTENTION))
    assert finding.change is not None
    mended = apply(finding.change, engine)
    assert mended.placement.gpus == (1, 0)
    assert "--stage 1" in (finding.fix or "")
    assert not {KERNELS, ATTENTION} & set(rules(judged(box, mended, SMALL)))


def test_the_same_cards_under_other_names_get_the_same_verdict() -> None:
    for cards in ((a100(0), t4(1)), (rtx4090(0), rtx3090(1))):
        renamed = tuple(replace(gpu, name="NVIDIA Card") for gpu in cards)
        for engine in (TP, PP):
            assert rules(judged(Box(cards), engine, SMALL)) == rules(judged(Box(renamed), engine, SMALL))


def test_mixed_memory_in_a_group_names_what_it_costs() -> None:
    found = {finding.rule: finding for finding in judged(Box((a100(0), rtx4090(1))), TP, SMALL).findings}
    assert "16.0 GiB of the larger cards stay unused" in found["tp-mixed-memory"].message
    assert "tp-mixed-memory" not in rules(judged(Box((rtx3090(0), rtx3090(1))), TP, SMALL))


def test_mixed_memory_across_stages_is_told_until_a_partition_is_given() -> None:
    box = Box((rtx3090(0), card(1, "NVIDIA A40", 46068, "8.6")))
    found = set(rules(judged(box, PP, SMALL)))
    assert found & {"pp-mixed-memory", "memory-uneven"}
    assert "pp-mixed-memory" not in rules(judged(box, spec((0,), (1,), partition=(6, 10)), SMALL))


@pytest.mark.parametrize(
    ("cards", "backends"),
    [
        ((a100(0), card(1, "H100", 81559, "9.0")), ("FlashAttention 2", "FlashAttention 3")),
        ((t4(0), a100(1)), ("TRITON_ATTN", "FlashAttention 2")),
        ((a100(0), l40s(1)), ()),
    ],
)
def test_attention_backends_that_differ_within_a_group(cards: tuple[Gpu, Gpu], backends: tuple[str, ...]) -> None:
    messages = [
        finding.message
        for finding in judged(Box(cards), TP, SMALL).findings
        if finding.rule == "attention-backend-mixed"
    ]
    assert len(messages) == bool(backends)
    assert all(name in message for name in backends for message in messages)
