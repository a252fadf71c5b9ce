"""Quantized weights, experts and decode context parallelism against TP."""

from typing import Any

import pytest

from gpudeck.services.models.types import Experts
from gpudeck.services.plan.changes import apply
from tests.services.rules.plans import judged, model, rules, spec
from tests.services.rules.test_rules import EIGHT

# Qwen3-30B-A3B's shape: 128 experts of 768 columns.
MOE: dict[str, Any] = {"experts": Experts(128, 8, 768), "attention_heads": 32, "kv_heads": 4, "head_dim": 128}


@pytest.mark.parametrize(
    ("facts", "ranks", "severity"),
    [
        ({"quantization": "fp8", "quantization_block": (128, 128), **MOE}, 2, None),
        ({"quantization": "fp8", "quantization_block": (128, 128), **MOE}, 4, "error"),  # 192 columns a rank
        ({"quantization": "gptq", "quantization_group": 128, **MOE}, 4, "error"),
        ({"quantization": "gptq", "quantization_group": 32, **MOE}, 4, None),
        ({"quantization": "awq", "quantization_group": 128, "intermediate_size": 14336}, 4, None),
        ({"quantization": "awq", "quantization_group": 128, "intermediate_size": 18944}, 8, "error"),
        ({"quantization": "fp8", "quantization_block": (128, 128), "intermediate_size": 14336}, 8, None),
    ],
)
def test_blocks_and_groups_must_stay_whole(facts: dict[str, Any], ranks: int, severity: str | None) -> None:
    engine = spec(tuple(range(ranks)))
    judgement = judged(EIGHT, engine, model(**facts))
    assert rules(judgement).get("quantized-shards") == severity
    for finding in judgement.findings:
        if finding.rule == "quantized-shards":
            assert finding.change is not None
            assert "quantized-shards" not in rules(judged(EIGHT, apply(finding.change, engine), model(**facts)))


def test_whole_experts_need_no_whole_blocks_of_a_slice() -> None:
    facts = model(quantization="fp8", quantization_block=(128, 128), **MOE)
    whole = spec((0, 1, 2, 3), extra=("--enable-expert-parallel",))
    assert "quantized-shards" not in rules(judged(EIGHT, whole, facts))


def test_a_checkpoint_tells_its_groups() -> None:
    assert model("qwen2.5-32b-awq").quantization_group == 128


@pytest.mark.parametrize(
    ("facts", "extra", "rule"),
    [
        ({}, ("--enable-expert-parallel",), "experts-none"),
        ({}, ("-ep",), "experts-none"),
        (MOE, ("--enable-eplb",), "eplb-without-experts"),
        ({}, ("-dcp", "3"), "dcp-divisible"),
        ({}, ("--decode_context_parallel_size=4",), "dcp-divisible"),
    ],
)
def test_parallel_options_that_contradict(facts: dict[str, Any], extra: tuple[str, ...], rule: str) -> None:
    engine = spec((0, 1), extra=extra)
    judgement = judged(EIGHT, engine, model(**facts))
    assert rules(judgement)[rule] == "error"
    change = next(finding.change for finding in judgement.findings if finding.rule == rule)
    assert change is not None
    assert rule not in rules(judged(EIGHT, apply(change, engine), model(**facts)))


@pytest.mark.parametrize(
    ("facts", "extra"), [(MOE, ("--enable-expert-parallel", "--enable-eplb")), ({}, ("-dcp", "2"))]
)
def test_parallel_options_that_agree(facts: dict[str, Any], extra: tuple[str, ...]) -> None:
    found = rules(judged(EIGHT, spec((0, 1), extra=extra), model(**facts)))
    assert not set(found) & {"experts-none", "eplb-without-experts", "dcp-divisible"}
