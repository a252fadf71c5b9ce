"""Served names and tokenizers against the model, and .gguf files."""

from dataclasses import replace
from typing import Any

import pytest

from gpudeck.services.models.types import Experts
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings
from tests.services.rules.plans import judged, model, rules, spec
from tests.services.rules.test_rules import EIGHT


@pytest.mark.parametrize(
    ("served", "facts", "belies"),
    [
        ("llama-70b", {}, True),
        ("meta-llama/Llama-3.1-405B-Instruct", {}, True),
        ("qwen2.5", {}, True),
        ("llama-8b", {}, False),
        ("Llama-3.1-8B-Instruct", {}, False),
        ("llama-7b", {}, False),
        ("gpt-4", {}, False),
        ("chat", {}, False),
        ("model-v2b1", {}, False),
        ("deepseek-r1", {"name": "DeepSeek-R1-Distill-Llama-8B"}, False),
        ("my-70b", {"name": "odd-70b"}, False),
        ("mixtral-8x7b", {"experts": Experts(8, 2, 14336), "name": "Mixtral"}, False),
        ("llama-70b", {"parameters": None}, False),
    ],
)
def test_a_served_name(served: str, facts: dict[str, Any], belies: bool) -> None:
    found = rules(judged(EIGHT, spec((0,), served_model_name=served), replace(model(), **facts)))
    assert ("served-name-belies" in found) == belies


@pytest.mark.parametrize(
    ("tokens", "mismatch"), [(None, False), (128_256, False), (128_000, False), (151_936, True), (32_000, True)]
)
def test_a_tokenizer(tokens: int | None, mismatch: bool) -> None:
    engine = spec((0,), extra=("--tokenizer", "/models/other"))
    found = rules(judge(EIGHT, model(), engine, around=Surroundings(tokenizer_tokens=tokens)))
    assert ("tokenizer-other-model" in found) == mismatch


@pytest.mark.parametrize(
    ("options", "version", "expected"),
    [
        ({}, "0.33", {"gguf-plugin", "gguf-tokenizer"}),
        ({"extra": ("--tokenizer", "x/y")}, "0.33", {"gguf-plugin"}),
        ({"extra": ("--tokenizer", "x/y")}, "0.20", set()),
        ({"extra": ("--tokenizer", "x/y"), "load_format": "gguf"}, "0.33", {"gguf-plugin", "gguf-load-format"}),
    ],
)
def test_a_gguf_file(options: dict[str, Any], version: str, expected: set[str]) -> None:
    judgement = judge(
        EIGHT, model(quantization="gguf"), spec((0,), **options), around=Surroundings(vllm_version=version)
    )
    assert {rule for rule in rules(judgement) if rule.startswith("gguf-")} == expected


def test_gguf_blocks_must_stay_whole() -> None:
    engine = spec((0, 1, 2, 3), extra=("--tokenizer", "x/y"))
    odd = model(quantization="gguf", intermediate_size=11008)  # 2752 a rank at TP 4
    assert rules(judged(EIGHT, engine, odd))["gguf-shards"] == "warning"
    assert "gguf-shards" not in rules(judged(EIGHT, engine, model(quantization="gguf")))


@pytest.mark.parametrize(("version", "told"), [("0.27.1", False), ("0.28.0", True)])
def test_bitsandbytes_by_version(version: str, told: bool) -> None:
    facts = model(quantization="bitsandbytes")
    found = rules(judge(EIGHT, facts, spec((0,)), around=Surroundings(vllm_version=version)))
    assert ("bitsandbytes-plugin" in found) == told
