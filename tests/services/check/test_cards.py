"""The check that owners make by hand with nvidia-smi."""

from dataclasses import replace

import pytest

from gpudeck.services.box.types import GIB, Box, GpuProcess, Reading, Snapshot
from gpudeck.services.check.cards import card_items
from gpudeck.services.check.types import Item, Outcome
from gpudeck.services.plan.types import EngineSpec, Placement

# Two copies of two stages of one card each, on cards out of order.
SPEC = EngineSpec("chat", "/m", Placement(((2,), (0,), (3,), (1,)), replicas=2))
PLACES = {2: (0, 0, 0), 0: (0, 1, 0), 3: (1, 0, 0), 1: (1, 1, 0)}


def snapshot(**changes: dict[int, object]) -> Snapshot:
    """Every card at work with its worker, but for `changes`: a field of Reading → values by card."""
    readings = {
        gpu: Reading(
            gpu, utilization_percent=90, memory_used_bytes=20 * GIB,
            processes=(GpuProcess(7, "VLLM::Worker", engine="chat", dp_rank=dp, pp_rank=pp, tp_rank=tp),),
        )
        for gpu, (dp, pp, tp) in PLACES.items()
    }  # fmt: skip
    for field, values in changes.items():
        for gpu, value in values.items():
            readings[gpu] = replace(readings[gpu], **{field: value})  # type: ignore[arg-type]
    return Snapshot(Box(()), 1.0, tuple(readings.values()))


def found(*during: Snapshot, before: Snapshot | None = None) -> dict[str, Item]:
    return {item.id: item for item in card_items(SPEC, before, during)}


def test_all_is_as_planned() -> None:
    items = found(snapshot(), before=snapshot(utilization_percent=dict.fromkeys(PLACES, 0)))
    assert {item.outcome for item in items.values()} == {Outcome.PASSED}
    assert set(items) == {"cards-busy", "cards-workers"}


def test_a_card_that_did_nothing_is_named() -> None:
    item = found(snapshot(utilization_percent={1: 0}), snapshot(utilization_percent={1: 3}))["cards-busy"]
    assert item.outcome is Outcome.FAILED
    assert "GPU 1 (at most 3 %, 0 % before) did nothing" in item.words


def test_work_that_was_there_before_is_none_of_the_engine() -> None:
    at_rest: dict[int, object] = dict.fromkeys(PLACES, 0)
    busy = snapshot(utilization_percent={**at_rest, 1: 40})
    assert found(snapshot(utilization_percent={1: 40}), before=busy)["cards-busy"].outcome is Outcome.FAILED
    assert found(snapshot(utilization_percent={1: 80}), before=busy)["cards-busy"].outcome is Outcome.PASSED
    full: dict[int, object] = {**at_rest, 1: 100}  # nothing can be told of a card that can not be busier
    passing = found(snapshot(utilization_percent={1: 100}), before=snapshot(utilization_percent=full))
    assert passing["cards-busy"].outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("processes", "hidden", "outcome", "words"),
    [
        ((), False, Outcome.FAILED, "no process of chat on GPU 1"),
        ((), True, Outcome.SKIPPED, "does not tell who is on GPU 1"),
        ((GpuProcess(9, "python"),), False, Outcome.SKIPPED, "GPU 1"),
        ((GpuProcess(9, "VLLM::Worker", engine="other"),), False, Outcome.FAILED, "no process of chat on GPU 1"),
        (
            (GpuProcess(9, "VLLM::Worker", engine="chat", dp_rank=0, pp_rank=1, tp_rank=0),),
            False,
            Outcome.FAILED,
            "GPU 1 holds copy 0 where 1 was planned",
        ),
        ((GpuProcess(9, "VLLM::EngineCore", engine="chat"),), False, Outcome.PASSED, "each with the rank"),
    ],
)
def test_who_is_on_a_card(processes: tuple[GpuProcess, ...], hidden: bool, outcome: Outcome, words: str) -> None:
    seen = snapshot(processes={1: processes}, processes_hidden={1: hidden}, memory_used_bytes={1: 100 << 20})
    item = found(seen)["cards-workers"]
    assert item.outcome is outcome
    assert words in item.words


def test_a_driver_that_lists_nobody_while_memory_is_in_use() -> None:
    assert found(snapshot(processes={1: ()}))["cards-workers"].outcome is Outcome.SKIPPED


def test_a_card_that_the_box_does_not_have() -> None:
    seen = snapshot()
    item = found(replace(seen, readings=seen.readings[:-1]))["cards-workers"]
    assert item.outcome is Outcome.FAILED
    assert "GPU 1 (the box has no such card)" in item.words


def test_uneven_memory_over_stages_is_said_to_be_normal() -> None:
    item = found(snapshot(memory_used_bytes={2: 30 * GIB}))["cards-memory"]
    assert item.outcome is Outcome.NOTE
    assert "GPU 2 30.0 GiB" in item.words
    assert "is normal" in item.words


def test_a_driver_that_tells_no_utilisation() -> None:
    assert found(snapshot(utilization_percent={1: None}))["cards-busy"].outcome is Outcome.SKIPPED
    assert card_items(SPEC, None, ()) == ()
