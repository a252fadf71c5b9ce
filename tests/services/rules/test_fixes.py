"""What a fix changes removes the finding that it stands beside."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.box.types import GIB, Box
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.changes import apply
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.judge import judge
from tests.services.rules.plans import CROSSED, MIXED, a100, judged, model, rules, spec, t4
from tests.services.rules.test_rules import A100S, EIGHT
from tests.services.rules.test_rules_properties import MODELS, NAMES, boxes, specs, used

SMALL = "llama-3.2-1b"


@pytest.mark.parametrize(
    ("box", "engine", "facts", "taken", "rule"),
    [
        (A100S, spec((0, 1), ()), {}, {}, "stage-empty"),
        (A100S, spec((0,), extra=("-tp", "2")), {}, {}, "placement-overridden"),
        (A100S, spec((0,), environment=(("CUDA_VISIBLE_DEVICES", "3"),)), {}, {}, "placement-overridden"),
        (A100S, spec((0, 1, 2)), {}, {}, "heads-divisible"),
        (A100S, spec((0,), (1,)), {"supports_pipeline": False}, {}, "pp-unsupported"),
        (A100S, spec((0,), (1,), partition=(10, 10)), {}, {}, "layer-partition"),
        (CROSSED, spec((0, 1), (2, 3)), {}, {}, "tp-slow-link"),
        (MIXED, spec((1,), (0,)), {}, {}, None),
        (MIXED, spec((0,), (1,)), {}, {}, "first-card-decides"),
        (Box((a100(0), t4(1))), spec((0, 1)), {}, {}, "attention-backend-first-card"),
        (A100S, spec((0,), extra=("--attention-backend", "FLASHMLA")), {}, {}, "attention-backend-capability"),
        (Box((t4(0),)), spec((0,), dtype="bfloat16"), {}, {}, "bf16-capability"),
        (Box((t4(0),)), spec((0,)), {}, {}, "bf16-as-fp16"),
        (Box((t4(0),)), spec((0,), kv_cache_dtype="fp8"), {}, {}, "kv-cache-fp8-capability"),
        (A100S, spec((0,), kv_cache_dtype="fp8"), {}, {}, "kv-cache-fp8-flashinfer"),
        (A100S, spec((0,)), {}, {0: 10 * GIB}, "gpu-occupied"),
        (A100S, spec((0,), max_model_len=200_000), {}, {}, "max-model-len-model"),
        (MIXED, spec((0,), max_model_len=131_072), {"parameters": 8_030_261_248}, {}, None),
        (A100S, spec((0,), gpu_memory_utilization=1.5), {}, {}, "utilization-range"),
        (A100S, spec((0,), gpu_memory_utilization=0.94), {}, {}, "headroom"),
        (A100S, spec((0,), kv_cache_dtype="fp9"), {}, {}, "kv-cache-dtype-unknown"),
        (A100S, spec((0,), dtype="int3"), {}, {}, "dtype-unknown"),
        (A100S, spec((0,), quantization="nosuchquant"), {}, {}, "quantization-unknown"),
        (A100S, spec((0,), max_num_batched_tokens=8, max_num_seqs=64), {}, {}, "batched-tokens-seqs"),
        (A100S, spec((0,), extra=("--kv-cache-memory-bytes", str(60 * GIB))), {}, {}, "kv-cache-memory-bytes"),
        (A100S, spec((0,), extra=("--no-enable-prefix-caching",)), {}, {}, "prefix-caching-off"),
        (A100S, spec((0,), extra=("--no-enable-chunked-prefill",)), {}, {}, "chunked-prefill-off"),
        (A100S, spec((0,), extra=("--trust-remote-code",)), {}, {}, "trust-remote-code"),
        (A100S, spec((0,), extra=("--api-key", "secret")), {}, {}, "api-key-shown"),
        (A100S, spec((0,), host="0.0.0.0"), {}, {}, "open-to-network"),
        (A100S, spec((0,), served_model_name="llama-70b"), {}, {}, "served-name-belies"),
        (MIXED, spec((0,), gpu_memory_utilization=0.05, max_model_len=131_072), {}, {}, "kv-cache-room"),
        (EIGHT, spec((0,), gpu_memory_utilization=0.02), {}, {}, "kv-cache-room"),
    ],
)
def test_a_change_removes_its_finding(
    box: Box, engine: EngineSpec, facts: dict[str, Any], taken: dict[int, int], rule: str | None
) -> None:
    chosen = model(SMALL, **{"parameters": model(SMALL).parameters, **facts})
    judgement = judged(box, engine, chosen, taken)
    if rule is not None:
        assert any(finding.rule == rule and finding.change for finding in judgement.findings), judgement.findings
    for finding in judgement.findings:
        if finding.change is not None:
            mended = judged(box, apply(finding.change, engine), chosen, taken)
            assert finding not in mended.findings
            if finding.rule == rule:
                assert rule not in rules(mended)


@given(boxes(), st.sampled_from(NAMES), specs, used)
def test_no_change_leaves_its_finding_as_it_was(box: Box, name: str, spec: EngineSpec, taken: dict[int, int]) -> None:
    facts: ModelFacts = MODELS[name]
    for finding in judge(box, facts, spec, used=taken).findings:
        if finding.change is not None:
            mended = apply(finding.change, spec)
            assert mended != spec, finding
            assert finding not in judge(box, facts, mended, used=taken).findings


def test_no_share_is_advised_in_which_nothing_could_be_served() -> None:
    found = judged(A100S, spec((0,)), model(), {0: 37 * GIB}).findings
    occupied = next(finding for finding in found if finding.rule == "gpu-occupied")
    assert occupied.change is None
    assert occupied.fix == "Free the card, or use another one."


def test_a_share_is_raised_even_where_the_whole_length_does_not_fit() -> None:
    found = judged(MIXED, spec((0,), gpu_memory_utilization=0.5, max_model_len=131_072)).findings
    room = next(finding for finding in found if finding.rule == "kv-cache-room")
    assert (room.fix or "").startswith("Use --gpu-memory-utilization 0.90 and a shorter --max-model-len")
    assert room.change is not None
    mended = judged(MIXED, apply(room.change, spec((0,), max_model_len=131_072)))
    assert set(rules(mended)) == {"max-model-len-kv"}


def test_a_partition_moves_with_its_stages() -> None:
    engine = replace(spec((0,), (1,)), layer_partition=(10, 22))
    change = next(finding.change for finding in judged(MIXED, engine).findings if finding.rule == "first-card-decides")
    assert change is not None
    mended = apply(change, engine)
    assert (mended.placement.stages, mended.layer_partition) == (((1,), (0,)), (22, 10))


def test_a_card_in_two_places_is_told_once() -> None:
    found = judged(A100S, spec((0, 0)), model(SMALL)).findings
    assert [finding.rule for finding in found if finding.severity.value == "error"] == ["gpu-twice"]
