"""Each rule finds what it is for, and stays silent beside it."""

from typing import Any

import pytest

from gpudeck.services.box.types import GIB, Box, GpuProcess, Link, Reading
from gpudeck.services.models.types import Mla
from gpudeck.services.plan.findings import Severity, VerdictState
from gpudeck.services.plan.types import EngineSpec, Placement
from gpudeck.services.rules.judge import RULES, judge
from gpudeck.services.rules.surroundings import Surroundings
from tests.services.rules.plans import (
    CROSSED,
    MIXED,
    a100,
    card,
    h100,
    judged,
    l40s,
    model,
    rtx3090,
    rtx4090,
    rules,
    spec,
    t4,
)

A100S = Box((a100(0), a100(1), a100(2), a100(3)), tuple(Link(a, b, "NV12") for a in range(4) for b in range(a)))
EIGHT = Box(tuple(h100(index) for index in range(8)), tuple(Link(a, b, "NV18") for a in range(8) for b in range(a)))


def test_the_rule_table_has_one_entry_for_each_id_with_why_and_source() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert all(rule.why and rule.source and rule.title for rule in RULES)


def test_two_like_cards_with_nvlink_are_ready_without_a_remark() -> None:
    judgement = judged(A100S, spec((0, 1)))
    assert judgement.state is VerdictState.READY
    assert judgement.findings == ()
    assert judgement.layers == (32,)


@pytest.mark.parametrize(
    ("engine", "rule", "part"),
    [
        (spec(), "placement-empty", "No card"),
        (spec((7,)), "gpu-missing", "GPU 7 is not in this box, which has GPUs 0 to 3"),
        (spec((0, 0)), "gpu-twice", "GPU 0 stands"),
        (spec((0, 1), ()), "stage-empty", "Stage 1"),
        (spec((0, 1), (2,)), "tp-uniform", "2 and 1 cards"),
        (spec((0,), (1,), (2,), replicas=2), "replicas-uneven", "3 stages do not divide into 2"),
        (spec((0,), replicas=0), "replicas-uneven", "0 copies"),
        (spec((0, 1, 2, 3, 4)), "world-size", "World size (5"),
        (spec((0,), extra=("-tp", "2")), "placement-overridden", "-tp"),
        (spec((0,), environment=(("CUDA_VISIBLE_DEVICES", "3"),)), "placement-overridden", "CUDA_VISIBLE_DEVICES"),
        (spec((0,), environment=(("CUDA_VISIBLE_DEVICES", "MIG-1b2c"),)), "mig-uuid", "MIG slice"),
    ],
)
def test_placements_that_can_not_run(engine: EngineSpec, rule: str, part: str) -> None:
    for facts in (None, model()):
        judgement = judge(A100S, facts, engine)
        assert rules(judgement)[rule] == "error"
        assert part in next(finding.message for finding in judgement.findings if finding.rule == rule)
        assert judgement.state is VerdictState.BLOCKED


@pytest.mark.parametrize(
    ("engine", "facts", "rule"),
    [
        (spec((0, 1, 2)), {}, "heads-divisible"),
        (spec((0, 1, 2, 3)), {"kv_heads": 6, "attention_heads": 24}, "kv-heads-divisible"),
        (spec((0, 1)), {"kv_heads": 3, "attention_heads": 24}, "kv-heads-divisible"),
        (spec((0, 1, 2)), {"attention_heads": 24, "kv_heads": 3, "vocab_size": 32000}, "vocabulary-divisible"),
        (spec((0, 1)), {"intermediate_size": 14337}, "intermediate-divisible"),
        (spec((0,), (1,), (2,)), {"layers": 2}, "pp-layers"),
        (spec((0,), (1,)), {"supports_pipeline": False}, "pp-unsupported"),
        (spec((0,), (1,), partition=(32,)), {}, "layer-partition"),
        (spec((0,), (1,), partition=(32, 0)), {}, "layer-partition"),
        (spec((0,), (1,), partition=(40, -8)), {}, "layer-partition"),
        (spec((0,), (1,), partition=(10, 10)), {}, "layer-partition"),
    ],
)
def test_models_that_do_not_divide(engine: EngineSpec, facts: dict[str, Any], rule: str) -> None:
    judgement = judged(A100S, engine, model(**facts))
    assert rules(judgement)[rule] == "error"
    assert next(finding.fix for finding in judgement.findings if finding.rule == rule)


@pytest.mark.parametrize(
    ("engine", "facts"),
    [
        (spec((0, 1, 2, 3)), {}),
        (spec((0, 1, 2, 3)), {"kv_heads": 2}),
        (spec((0, 1, 2, 3)), {"mla": Mla(512, 64, 128, 128), "kv_heads": 3}),
        (spec((0,), (1,), partition=(12, 20)), {}),
        (spec((0,), (1,), (2,)), {}),
    ],
)
def test_models_that_do_divide(engine: EngineSpec, facts: dict[str, Any]) -> None:
    assert judged(A100S, engine, model(**facts)).state is not VerdictState.BLOCKED


def test_copied_kv_heads_are_worth_a_remark() -> None:
    assert rules(judged(A100S, spec((0, 1, 2, 3)), model(kv_heads=2)))["kv-heads-copied"] == "info"


def test_heads_name_the_sizes_that_divide() -> None:
    judgement = judged(EIGHT, spec((0, 1, 2)))
    assert judgement.findings[0].fix == "Use a tensor parallel size of 1, 2, 4 or 8, or one card a stage (PP 3)."


# The six mixes that operators ask about.
@pytest.mark.parametrize(
    ("cards", "expected"),
    [
        ((a100(0), a100(1)), {"tp-slow-link": None, "tp-mixed-architecture": None}),
        ((a100(0), l40s(1)), {"tp-mixed-architecture": "warning", "attention-backend-first-card": None}),
        ((a100(0), rtx4090(1)), {"tp-mixed-architecture": "warning", "first-card-decides": None}),
        ((rtx3090(0), rtx4090(1)), {"tp-mixed-architecture": "warning", "first-card-decides": None}),
        ((a100(0), t4(1)), {"tp-mixed-architecture": "warning", "attention-backend-first-card": "error"}),
    ],
)
def test_mixes_of_cards_in_one_tp_group(cards: tuple[object, object], expected: dict[str, str | None]) -> None:
    found = rules(judged(Box(cards), spec((0, 1)), model("llama-3.2-1b")))  # type: ignore[arg-type]
    for rule, severity in expected.items():
        assert found.get(rule) == severity


def test_the_lowest_card_first_avoids_a_backend_that_it_can_not_run() -> None:
    box = Box((a100(0), t4(1)))
    small = model("llama-3.2-1b")
    assert rules(judged(box, spec((1, 0)), small)).get("attention-backend-first-card") is None
    assert judged(box, spec((1, 0)), small).state is VerdictState.CAUTION
    forced = spec((0, 1), extra=("--attention-backend", "TRITON_ATTN"))
    assert judged(box, forced, small).state is VerdictState.CAUTION


def test_mixed_stages_are_a_caution() -> None:
    found = rules(judged(MIXED, spec((1,), (2,), (0,))))
    assert found["pp-mixed-architecture"] == "warning"
    assert "tp-mixed-architecture" not in found
    assert rules(judged(MIXED, spec((0,), (1,), (2,))))["first-card-decides"] == "warning"


def test_claims_rest_on_the_capability_and_never_on_the_name() -> None:
    liar = Box((card(0, "NVIDIA A100", 40960, "7.0"),))
    assert rules(judged(liar, spec((0,))))["capability-floor"] == "error"


def test_bfloat16_below_8_0() -> None:
    box = Box((t4(0),))
    small = model("llama-3.2-1b")
    assert rules(judged(box, spec((0,), dtype="bfloat16"), small))["bf16-capability"] == "error"
    assert rules(judged(box, spec((0,)), small))["bf16-as-fp16"] == "info"
    assert "bf16-as-fp16" not in rules(judged(box, spec((0,), dtype="float16"), small))


@pytest.mark.parametrize(
    ("gpu", "method", "rule", "severity"),
    [
        (t4(0), "mxfp4", "quantization-capability", "error"),
        (t4(0), "awq", "quantization-capability", None),
        (a100(0), "fp8", "fp8-weight-only", "info"),
        (l40s(0), "fp8", "fp8-weight-only", None),
        (l40s(0), "bitsandbytes", "bitsandbytes-plugin", "warning"),
    ],
)
def test_quantization_against_the_card(gpu: object, method: str, rule: str, severity: str | None) -> None:
    small = model("llama-3.2-1b", quantization=method)
    assert rules(judged(Box((gpu,)), spec((0,)), small)).get(rule) == severity  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gpu", "scheme", "rule", "severity"),
    [
        (l40s(0), "W4A8-FP8", "quantization-capability", "error"),
        (h100(0), "W4A8-FP8", "quantization-capability", None),
        (t4(0), "MXFP4", "quantization-capability", "error"),
        (t4(0), "NVFP4", "quantization-capability", None),
        (a100(0), "W8A8-FP8", "fp8-weight-only", "info"),
    ],
)
def test_schemes_of_compressed_tensors(gpu: object, scheme: str, rule: str, severity: str | None) -> None:
    small = model("llama-3.2-1b", quantization="compressed-tensors", quantization_scheme=scheme)
    assert rules(judged(Box((gpu,)), spec((0,)), small)).get(rule) == severity  # type: ignore[arg-type]


def test_quantization_is_checked_on_every_card() -> None:
    found = rules(judged(Box((a100(0), t4(1))), spec((0,), (1,), quantization="mxfp4"), model("llama-3.2-1b")))
    assert found["quantization-capability"] == "error"


@pytest.mark.parametrize(
    ("gpu", "rule", "severity"),
    [
        (t4(0), "kv-cache-fp8-capability", "error"),
        (a100(0), "kv-cache-fp8-flashinfer", "warning"),
        (l40s(0), "kv-cache-fp8-flashinfer", None),
    ],
)
def test_fp8_kv_cache_against_the_card(gpu: object, rule: str, severity: str | None) -> None:
    engine = spec((0,), kv_cache_dtype="fp8")
    assert rules(judged(Box((gpu,)), engine, model("llama-3.2-1b"))).get(rule) == severity  # type: ignore[arg-type]


def test_a_slow_pair_names_the_bridged_one() -> None:
    judgement = judged(CROSSED, spec((0, 1)))
    finding = next(finding for finding in judgement.findings if finding.rule == "tp-slow-link")
    assert finding.fix == "Put GPU 0 and GPU 2 into one stage."
    assert "tp-slow-link" not in rules(judged(CROSSED, spec((0, 2), (1, 3))))


def test_weights_that_do_not_fit() -> None:
    judgement = judged(MIXED, spec((0,)), model("qwen2.5-32b"))
    assert rules(judgement)["weights-fit"] == "error"
    assert "61.0 GiB of weights" in judgement.findings[0].message


def test_a_length_that_does_not_fit_names_the_longest_that_does() -> None:
    judgement = judged(MIXED, spec((0,), max_model_len=131072))
    finding = next(finding for finding in judgement.findings if finding.rule == "max-model-len-kv")
    assert finding.fix is not None
    longest = int(finding.fix.split()[-1].rstrip("."))
    assert judged(MIXED, spec((0,), max_model_len=longest)).state is VerdictState.READY
    assert judged(MIXED, spec((0,), max_model_len=longest + 16)).state is VerdictState.BLOCKED


def test_a_length_beyond_the_models_own() -> None:
    assert rules(judged(EIGHT, spec((0,), max_model_len=200_000)))["max-model-len-model"] == "error"
    allowed = spec((0,), max_model_len=200_000, environment=(("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1"),))
    assert "max-model-len-model" not in rules(judged(EIGHT, allowed))


def test_an_automatic_length_always_fits() -> None:
    judgement = judged(MIXED, spec((0,), max_model_len=-1))
    assert judgement.state is VerdictState.READY
    assert judgement.memory is not None
    assert 32 < judgement.memory.max_model_len < 131072


def test_a_card_that_others_hold() -> None:
    judgement = judged(MIXED, spec((1,)), used={1: 10 * GIB})
    finding = judgement.findings[0]
    assert finding.rule == "gpu-occupied"
    assert finding.severity is Severity.ERROR
    assert finding.fix is not None
    share = float(finding.fix.split()[2].rstrip(","))
    judgement = judged(MIXED, spec((1,), gpu_memory_utilization=share), used={1: 10 * GIB})
    assert rules(judgement)["gpu-shared"] == "warning"
    assert "gpu-occupied" not in rules(judgement)


def test_who_holds_most_of_a_card_is_named() -> None:
    stranger, other = GpuProcess(4711, "pyth\x1b[2Jon3", 9 * GIB), GpuProcess(4712, "nvtop", 1 * GIB)
    around = Surroundings(readings=(Reading(1, processes=(other, stranger)), Reading(2, processes=(other,))))
    for index, named in ((1, True), (2, False)):
        judgement = judge(MIXED, model(), spec((index,)), used={index: 10 * GIB}, around=around)
        message = judgement.findings[0].message
        assert ("are taken already, most of it by pyth^[[2Jon3 (pid 4711)." in message) is named
        assert message.endswith(".")


def test_uneven_memory_over_stages() -> None:
    assert rules(judged(MIXED, spec((1,), (2,), (0,))))["memory-uneven"] == "warning"


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"gpu_memory_utilization": 1.5}, "utilization-range"),
        ({"gpu_memory_utilization": 0.0}, "utilization-range"),
        ({"gpu_memory_utilization": 1.0}, "gpu-occupied"),
        ({"kv_cache_dtype": "fp9"}, "kv-cache-dtype-unknown"),
        ({"dtype": "int3"}, "dtype-unknown"),
        ({"quantization": "nosuchquant"}, "quantization-unknown"),
        ({"quantization": "fbgemm_fp8"}, "quantization-deprecated"),
        ({"max_num_batched_tokens": 8, "max_num_seqs": 64}, "batched-tokens-seqs"),
        ({"max_num_batched_tokens": 1024, "extra": ("--no-enable-chunked-prefill",)}, "batched-tokens-length"),
        ({"extra": ("--kv-cache-memory-bytes", str(60 * GIB))}, "kv-cache-memory-bytes"),
    ],
)
def test_options_that_vllm_refuses(options: dict[str, Any], rule: str) -> None:
    assert rules(judged(A100S, spec((0,), **options)))[rule] == "error"


def test_a_quantization_other_than_the_checkpoints() -> None:
    awq = model("qwen2.5-32b-awq")
    assert rules(judged(A100S, spec((0,), quantization="gptq"), awq))["quantization-mismatch"] == "error"
    assert "quantization-mismatch" not in rules(judged(A100S, spec((0,), quantization="awq_marlin"), awq))


def test_what_is_assumed_is_said() -> None:
    judgement = judged(A100S, spec((0,), load_format=None), model(guesses=("the family is unknown",)))
    assert rules(judgement) == {"model-guessed": "info", "model-without-weights": "info"}
    assert judgement.state is VerdictState.READY


def test_without_a_model_only_box_and_placement_are_judged() -> None:
    judgement = judge(MIXED, None, EngineSpec("x", "", Placement(((0, 1),))))
    assert judgement.memory is None
    assert set(rules(judgement)) == {"tp-mixed-architecture", "first-card-decides", "tp-mixed-memory"}
