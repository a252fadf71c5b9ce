"""Advice is information: it never changes the verdict, and a plain healthy plan hears little of it."""

from typing import Any

import pytest

from gpudeck.services.box.types import Box
from gpudeck.services.plan.findings import VerdictState
from tests.services.rules.plans import a100, card, judged, model, rules, spec, t4
from tests.services.rules.test_rules import A100S, EIGHT


def test_a_plain_healthy_plan_is_ready_without_a_word() -> None:
    assert judged(A100S, spec((0,))).findings == ()


@pytest.mark.parametrize(
    ("box", "name", "options", "rule"),
    [
        (Box((t4(0),)), "llama-3.2-1b", {}, "capability-below-production"),
        (Box((card(0, "A", 8192, "8.6"),)), "llama-3.2-1b", {}, "card-small"),
        (A100S, "llama-3.1-8b", {"gpu_memory_utilization": 0.93}, "headroom"),
        (EIGHT, "qwen2.5-32b", {"max_model_len": 8192}, "quantize-large"),
    ],
)
def test_advice_where_it_applies(box: Box, name: str, options: dict[str, Any], rule: str) -> None:
    engine = spec((0, 1) if name == "qwen2.5-32b" else (0,), **options)
    judgement = judged(box, engine, model(name))
    assert rules(judgement)[rule] == "info"
    assert judgement.state is VerdictState.READY


@pytest.mark.parametrize(
    ("facts", "rule"),
    [({"quantization": "awq", "quantization_group": 128}, "quantize-large"), ({"parameters": 8e9}, "quantize-large")],
)
def test_no_advice_to_quantize_what_is_small_or_quantized(facts: dict[str, Any], rule: str) -> None:
    assert rule not in rules(judged(EIGHT, spec((0, 1)), model("qwen2.5-32b", **facts)))


def test_a_16_gb_card_is_not_called_small() -> None:
    assert "card-small" not in rules(judged(Box((t4(0), a100(1))), spec((0,)), model("llama-3.2-1b")))


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"host": "0.0.0.0"}, "open-to-network"),
        ({"host": "::"}, "open-to-network"),
        ({"host": "127.0.0.1"}, None),
        ({"host": "0.0.0.0", "environment": (("VLLM_API_KEY", "k"),)}, None),
        ({"host": "localhost"}, None),
        ({"extra": ("--api-key=k",)}, "api-key-shown"),
        ({"extra": ("--trust-remote-code",)}, "trust-remote-code"),
        ({"extra": ("--trust_remote_code",)}, "trust-remote-code"),
    ],
)
def test_who_may_reach_the_engine(options: dict[str, Any], rule: str | None) -> None:
    assert set(rules(judged(A100S, spec((0,), **options)))) == ({rule} if rule else set())


@pytest.mark.parametrize(
    ("capability", "backend", "blocked"),
    [
        ("7.5", "FLASH_ATTN", True),
        ("8.0", "FLASH_ATTN", False),
        ("7.5", "TRITON_ATTN", False),
        ("12.1", "FLASHINFER", False),
        ("8.9", "FLASHMLA", True),
        ("9.0", "FLASHMLA", False),
        ("9.0", "CUTLASS_MLA", True),
        ("8.9", "SOMETHING_NEW", False),
    ],
)
def test_a_forced_attention_backend(capability: str, backend: str, blocked: bool) -> None:
    box = Box((card(0, "A", 40960, capability),))
    found = rules(judged(box, spec((0,), extra=("--attention-backend", backend)), model("llama-3.2-1b")))
    assert ("attention-backend-capability" in found) == blocked
