"""What a scrape holds of the cards and of the engines."""

import math
from collections.abc import Iterable
from dataclasses import replace

from prometheus_client.core import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gpudeck.services.box.types import GIB, Box, BoxEvent, GpuProcess, Reading, Severity, Snapshot
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.exporter.serving import BoxCollector
from tests.services.box.boxes import busy, card, pair

WORKER = GpuProcess(11, "VLLM::Worker_TP0", 20 * GIB, engine="chat", tp_rank=0, pp_rank=1)
STRANGER = GpuProcess(12, "python", 2 * GIB)
HIDDEN = GpuProcess(13, "python", None)
UNIT = UnitState("chat", "vllm-chat.service", Scope.SYSTEM, True, "active", restarts=3)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(snapshot: Snapshot | OperatorError, units: Iterable[UnitState] = ()) -> Samples:
    """Every sample as Prometheus would read it."""
    collector = BoxCollector(lambda: units)
    collector.put(snapshot)
    registry = CollectorRegistry()
    registry.register(collector)
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


def test_readings_are_in_base_units() -> None:
    samples = scraped(Snapshot(pair(), 0.0, (busy(0), busy(1))))
    assert value(samples, "gpudeck_gpu_utilization_ratio", gpu="1") == 0.87
    assert value(samples, "gpudeck_gpu_memory_used_bytes", gpu="0") == 30 * GIB
    assert value(samples, "gpudeck_gpu_sm_clock_hertz", gpu="0") == 1_410_000_000
    assert value(samples, "gpudeck_gpu_ecc_errors_total", gpu="0", kind="corrected") == 0
    assert value(samples, "gpudeck_gpu_ecc_errors_lifetime", gpu="0", kind="corrected") == 2
    assert value(samples, "gpudeck_box_info", driver="580.95.05", cuda="13.0") == 1


def test_what_a_card_does_not_report_has_no_sample() -> None:
    samples = scraped(Snapshot(Box((card(0),)), 0.0, (Reading(0, utilization_percent=5),)))
    assert value(samples, "gpudeck_gpu_utilization_ratio", gpu="0") == 0.05
    assert value(samples, "gpudeck_gpu_power_watts", gpu="0") is None
    assert not [name for name, labels in samples if name.startswith("gpudeck_gpu_ecc")]


def test_a_card_with_a_fault_is_down_and_tells_no_old_figures() -> None:
    lost = replace(busy(0), fault="GPU 0 fell off the bus.")
    samples = scraped(Snapshot(pair(), 0.0, (lost, busy(1))))
    assert value(samples, "gpudeck_gpu_up", gpu="0") == 0
    assert value(samples, "gpudeck_gpu_up", gpu="1") == 1
    assert value(samples, "gpudeck_gpu_utilization_ratio", gpu="0") is None


def test_memory_is_told_by_engine_and_rank() -> None:
    reading = busy(0, WORKER, replace(WORKER, pid=14), STRANGER, HIDDEN)
    samples = scraped(Snapshot(Box((card(0),)), 0.0, (reading,)))
    held = {labels: size for (name, labels), size in samples.items() if name == "gpudeck_gpu_process_memory_bytes"}
    assert {dict(labels)["engine"]: size for labels, size in held.items()} == {"chat": 40 * GIB, "": 2 * GIB}
    assert {dict(labels)["pp_rank"] for labels in held} == {"1", ""}


def test_an_engine_and_its_restarts() -> None:
    samples = scraped(Snapshot(pair(), 0.0, (busy(0), busy(1))), [UNIT])
    labels = {"engine": "chat", "unit": "vllm-chat.service", "scope": "system"}
    assert value(samples, "gpudeck_engine_active", **labels) == 1
    assert value(samples, "gpudeck_engine_restarts_total", **labels) == 3


def test_an_error_of_the_driver_is_told_by_its_number() -> None:
    event = BoxEvent(0.0, Severity.ERROR, "It fell off the bus.", gpu=1, xid=79)
    samples = scraped(Snapshot(pair(), 0.0, (busy(0), busy(1)), (event,)))
    assert value(samples, "gpudeck_gpu_last_xid", gpu="1") == 79


def test_a_box_that_can_not_be_read_is_down_and_engines_are_told_all_the_same() -> None:
    samples = scraped(OperatorError("There is no driver."), [UNIT])
    assert value(samples, "gpudeck_box_up") == 0
    assert not [name for name, _ in samples if name.startswith("gpudeck_gpu_")]
    assert [name for name, _ in samples if name == "gpudeck_engine_active"]


def test_hostile_names_do_not_break_the_text() -> None:
    odd = 'a"b\\c\nd} 1\ngpudeck_box_up 0'
    samples = scraped(Snapshot(Box((card(0, odd),)), 0.0, (busy(0, replace(WORKER, engine=odd)),)))
    assert value(samples, "gpudeck_box_up") == 1
    assert odd in {dict(labels).get("engine") for _, labels in samples}
    assert not any(math.isnan(figure) for figure in samples.values())
