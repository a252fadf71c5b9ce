"""Boxes, models and specs that the tests of rules and plans are made of."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from gpudeck.services.box.types import MIB, Box, ComputeCapability, Gpu, Link
from gpudeck.services.models.read import read_model
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import Judgement
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.rules.judge import judge

MODELS = Path(__file__).parents[2] / "data" / "models"


def card(index: int, name: str, mib: int, capability: str) -> Gpu:
    major, minor = capability.split(".")
    return Gpu(index, name, mib * MIB, ComputeCapability(int(major), int(minor)))


def a100(index: int) -> Gpu:
    return card(index, "NVIDIA A100-SXM4-40GB", 40960, "8.0")


def rtx4090(index: int) -> Gpu:
    return card(index, "NVIDIA GeForce RTX 4090", 24564, "8.9")


def rtx3090(index: int) -> Gpu:
    return card(index, "NVIDIA GeForce RTX 3090", 24576, "8.6")


def l40s(index: int) -> Gpu:
    return card(index, "NVIDIA L40S", 46068, "8.9")


def t4(index: int) -> Gpu:
    return card(index, "Tesla T4", 15360, "7.5")


def h100(index: int) -> Gpu:
    return card(index, "NVIDIA H100 80GB HBM3", 81559, "9.0")


MIXED = Box((rtx4090(0), a100(1), a100(2)), (Link(1, 2, "NV12"),), name="mixed")
CROSSED = Box(
    tuple(card(index, "NVIDIA RTX A5500", 24564, "8.6") for index in range(4)),
    (Link(0, 2, "NV4"), Link(1, 3, "NV4")),
    name="crossed bridges",
)


def model(name: str = "llama-3.1-8b", **changes: Any) -> ModelFacts:
    return replace(read_model(str(MODELS / name)), **changes)


def spec(
    *stages: tuple[int, ...], replicas: int = 1, partition: tuple[int, ...] | None = None, **options: Any
) -> EngineSpec:
    environment = options.pop("environment", ())
    options.setdefault("max_model_len", 4096)
    options.setdefault("load_format", "dummy")
    return EngineSpec(
        "test",
        "/models/test",
        Placement(stages, replicas),
        EngineOptions(**options),
        layer_partition=partition,
        environment=environment,
    )


def rules(judgement: Judgement) -> dict[str, str]:
    """The rules that found something, with their severity."""
    return {finding.rule: finding.severity.value for finding in judgement.findings}


def judged(
    box: Box, engine: EngineSpec, facts: ModelFacts | None = None, used: dict[int, int] | None = None
) -> Judgement:
    return judge(box, facts if facts is not None else model(), engine, used=used or {})
