"""Other engines on the box: their cards, their shares, their ports."""

from dataclasses import replace
from typing import Any

import pytest

from gpudeck.services.plan.changes import apply
from gpudeck.services.plan.findings import Finding
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings
from tests.services.rules.plans import MIXED, model, spec


def neighbour(*stages: tuple[int, ...], shared: tuple[int, ...] = (), **options: Any) -> EngineSpec:
    return replace(spec(*stages, **{"port": 8001, **options}), name="coder", shared_gpus=shared)


def findings(engine: EngineSpec, *others: EngineSpec, version: str = "0.32") -> dict[str, Finding]:
    around = Surroundings(vllm_version=version, neighbours=others)
    judgement = judge(MIXED, model("llama-3.2-1b"), engine, around=around)
    return {finding.rule: finding for finding in judgement.findings}


def test_a_card_of_another_engine_is_claimed_and_sharing_it_frees_it() -> None:
    other = neighbour((1, 2), gpu_memory_utilization=0.4)
    engine = spec((1,), gpu_memory_utilization=0.4)
    found = findings(engine, other)["gpu-claimed"]
    assert found.message == "Cards that belong to other engines: GPU 1 to coder."
    assert found.fix == "Use GPU 0, which no engine has, or share the card on purpose (--share 1)."
    assert found.change is not None
    assert not findings(apply(found.change, engine), other).keys() & {"gpu-claimed", "gpu-shared-budget"}
    assert "gpu-claimed" not in findings(spec((0,)), other)


def test_sharing_may_be_said_by_either_engine() -> None:
    assert "gpu-claimed" not in findings(spec((1,), gpu_memory_utilization=0.4), neighbour((1,), shared=(1,)))


@pytest.mark.parametrize(
    ("own", "others", "rule"),
    [
        (0.5, 0.45, None),
        (0.5, 0.48, "gpu-shared-tight"),
        (0.6, 0.6, "gpu-shared-budget"),
        (None, 0.05, "gpu-shared-tight"),
        (None, None, "gpu-shared-budget"),
    ],
)
def test_shares_on_one_card_add_up(own: float | None, others: float | None, rule: str | None) -> None:
    engine = replace(spec((1,), gpu_memory_utilization=own), shared_gpus=(1,))
    found = findings(engine, neighbour((1,), gpu_memory_utilization=others))
    assert {name for name in found if name.startswith("gpu-shared-")} == ({rule} if rule else set())
    if rule is not None and (change := found[rule].change) is not None:
        after = findings(apply(change, engine), neighbour((1,), gpu_memory_utilization=others))
        assert not any(name.startswith("gpu-shared-") for name in after)


def test_the_default_share_is_that_of_the_version() -> None:
    engine = replace(spec((1,)), shared_gpus=(1,))
    other = neighbour((1,), gpu_memory_utilization=0.05)
    assert "gpu-shared-tight" in findings(engine, other)
    assert "gpu-shared-tight" not in findings(engine, other, version="0.11.0")


def test_no_share_is_advised_below_what_an_engine_can_use() -> None:
    engine = replace(spec((1,)), shared_gpus=(1,))
    found = findings(engine, neighbour((1,), gpu_memory_utilization=0.9))["gpu-shared-budget"]
    assert found.change is None
    assert found.fix is not None
    assert "gpu-memory-utilization" not in found.fix


def test_no_share_is_advised_in_which_the_model_does_not_fit() -> None:
    engine = replace(spec((1,)), shared_gpus=(1,))
    other = neighbour((1,), gpu_memory_utilization=0.6)
    around = Surroundings(neighbours=(other,))
    small = judge(MIXED, model("llama-3.2-1b"), engine, around=around).findings
    large = judge(MIXED, model("llama-3.1-8b"), engine, around=around).findings
    changes = [next(found.change for found in each if found.rule == "gpu-shared-budget") for each in (small, large)]
    assert changes[0] is not None
    assert changes[1] is None  # 15 GiB of weights in a third of 40


def test_a_fixed_cache_is_no_share() -> None:
    engine = replace(spec((1,), extra=("--kv-cache-memory-bytes", "1000000000")), shared_gpus=(1,))
    assert "gpu-shared-budget" not in findings(engine, neighbour((1,)))


def test_a_port_of_another_engine_moves_to_the_next_free_one() -> None:
    others = (neighbour((1,), port=8000), neighbour((2,), port=8001))
    engine = spec((0,), port=8000)
    found = findings(engine, *others)["port-claimed"]
    assert found.fix == "Use --port 8002."
    assert found.change is not None
    assert "port-claimed" not in findings(apply(found.change, engine), *others)
