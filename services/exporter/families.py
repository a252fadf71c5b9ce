"""A snapshot as Prometheus metric families: base units, `_total` for what only grows, one label for the card.

What a card does not report has no sample, never 0.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpudeck.services.box.types import Ecc, GpuProcess, Reading, Rows, Snapshot
from gpudeck.services.engine.types import UnitState

_MHZ = 1e6


@dataclass(frozen=True, slots=True)
class _Gauge:
    name: str
    help: str
    value: Callable[[Reading], float | None]


def _share(percent: int | None) -> float | None:
    return None if percent is None else percent / 100


def _hertz(megahertz: int | None) -> float | None:
    return None if megahertz is None else megahertz * _MHZ


_GAUGES = (
    _Gauge("utilization_ratio", "Share of time in which a kernel ran.", lambda r: _share(r.utilization_percent)),
    _Gauge(
        "memory_utilization_ratio",
        "Share of time in which memory was read or written.",
        lambda r: _share(r.memory_utilization_percent),
    ),
    _Gauge("encoder_ratio", "Use of the video encoder.", lambda r: _share(r.encoder_percent)),
    _Gauge("decoder_ratio", "Use of the video decoder.", lambda r: _share(r.decoder_percent)),
    _Gauge("memory_used_bytes", "Memory in use, the driver's reserve left out.", lambda r: r.memory_used_bytes),
    _Gauge("memory_free_bytes", "Memory that is free.", lambda r: r.memory_free_bytes),
    _Gauge("memory_reserved_bytes", "Memory that the driver keeps for itself.", lambda r: r.memory_reserved_bytes),
    _Gauge("temperature_celsius", "Core temperature.", lambda r: r.temperature_c),
    _Gauge("memory_temperature_celsius", "Memory temperature.", lambda r: r.memory_temperature_c),
    _Gauge("power_watts", "Power drawn.", lambda r: r.power_w),
    _Gauge("power_limit_watts", "The limit that is enforced.", lambda r: r.power_limit_w),
    _Gauge("sm_clock_hertz", "Clock of the multiprocessors.", lambda r: _hertz(r.sm_clock_mhz)),
    _Gauge("memory_clock_hertz", "Clock of the memory.", lambda r: _hertz(r.memory_clock_mhz)),
    _Gauge("fan_ratio", "Fan speed.", lambda r: _share(r.fan_percent)),
    _Gauge("performance_state", "0 is the fastest.", lambda r: r.performance_state),
    _Gauge("pcie_generation", "PCIe generation now.", lambda r: r.pcie_gen),
    _Gauge("pcie_width", "PCIe lanes now.", lambda r: r.pcie_width),
    _Gauge("pcie_transmit_bytes_per_second", "Out of the card over PCIe.", lambda r: r.pcie_tx_bytes_s),
    _Gauge("pcie_receive_bytes_per_second", "Into the card over PCIe.", lambda r: r.pcie_rx_bytes_s),
    _Gauge("nvlink_transmit_bytes_per_second", "Out of the card over NVLink.", lambda r: r.nvlink_tx_bytes_s),
    _Gauge("nvlink_receive_bytes_per_second", "Into the card over NVLink.", lambda r: r.nvlink_rx_bytes_s),
)
_COUNTERS = (
    _Gauge("energy_joules", "Energy drawn since the driver was loaded.", lambda r: r.energy_j),
    _Gauge("pcie_replays", "PCIe packets that were sent again.", lambda r: r.pcie_replays),
)


def box_families(snapshot: Snapshot, now: float) -> Iterator[Metric]:
    """Everything of the cards.  `now` is in seconds since the epoch, for the readings' ages."""
    box = snapshot.box
    info = GaugeMetricFamily(
        "gpudeck_box_info", "The driver, and the newest CUDA that it runs.", labels=["driver", "cuda"]
    )
    info.add_metric([box.driver or "", box.cuda or ""], 1)
    yield info
    yield from _facts(snapshot)
    up = _per_card("up", "Whether the card could be read.")
    age = _per_card("reading_age_seconds", "How old the card's reading is.")
    for reading in snapshot.readings:
        up.add_metric([str(reading.gpu)], reading.fault is None)
        age.add_metric([str(reading.gpu)], snapshot.age_of(reading, now))
    yield up
    yield age
    # A card with a fault repeats what was last known of it: that is no reading.
    readings = [reading for reading in snapshot.readings if reading.fault is None]
    for gauge in _GAUGES:
        yield _filled(_per_card(gauge.name, gauge.help), gauge, readings)
    for counter in _COUNTERS:
        family = CounterMetricFamily(f"gpudeck_gpu_{counter.name}", counter.help, labels=["gpu"])
        yield _filled(family, counter, readings)
    yield from _throttling_and_health(readings)
    yield _xids(snapshot)
    yield _processes(readings)


def engine_families(units: Iterable[UnitState]) -> Iterator[Metric]:
    """The engines as their runner has them."""
    labels = ["engine", "unit", "scope"]
    active = GaugeMetricFamily("gpudeck_engine_active", "Whether the engine's unit is active.", labels=labels)
    restarts = CounterMetricFamily("gpudeck_engine_restarts", "Restarts by systemd of its own accord.", labels=labels)
    for unit in units:
        values = [unit.name, unit.unit, unit.scope.value]
        active.add_metric(values, unit.active == "active")
        restarts.add_metric(values, unit.restarts)
    yield active
    yield restarts


def _per_card(name: str, about: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"gpudeck_gpu_{name}", about, labels=["gpu", *labels])


def _filled(family: Metric, gauge: _Gauge, readings: Iterable[Reading]) -> Metric:
    suffix = "_total" if family.type == "counter" else ""
    for reading in readings:
        value = gauge.value(reading)
        if value is not None:
            family.add_sample(f"{family.name}{suffix}", {"gpu": str(reading.gpu)}, value)
    return family


def _facts(snapshot: Snapshot) -> Iterator[Metric]:
    labels = ["uuid", "name", "compute_capability", "pcie_bus", "numa"]
    info = _per_card("info", "What the card is.", *labels)
    total = _per_card("memory_total_bytes", "Memory of the card, the driver's reserve included.")
    for gpu in snapshot.box.gpus:
        words = [gpu.uuid or "", gpu.name, str(gpu.compute_capability), gpu.pcie.bus or "", gpu.numa or ""]
        info.add_metric([str(gpu.index), *words], 1)
        total.add_metric([str(gpu.index)], gpu.memory_bytes)
    yield info
    yield total


def _throttling_and_health(readings: Iterable[Reading]) -> Iterator[Metric]:
    throttled = _per_card("throttled", "1 for each reason that holds the clock down.", "reason")
    errors = CounterMetricFamily(
        "gpudeck_gpu_ecc_errors", "Memory errors since the driver was loaded.", labels=["gpu", "kind"]
    )
    lifetime = _per_card("ecc_errors_lifetime", "Memory errors over the card's life.", "kind")
    rows = _per_card("remapped_rows", "Memory rows that were put out of use.", "kind")
    pending = _per_card("row_remapping_pending", "1 where a reset is needed to put a row out of use.")
    for reading in readings:
        card = str(reading.gpu)
        for reason in reading.throttle_reasons:
            throttled.add_metric([card, reason], 1)
        ecc, remapped = reading.ecc or Ecc(), reading.rows or Rows()
        _add(errors, card, corrected=ecc.volatile_corrected, uncorrected=ecc.volatile_uncorrected)
        _add(lifetime, card, corrected=ecc.aggregate_corrected, uncorrected=ecc.aggregate_uncorrected)
        _add(rows, card, corrected=remapped.remapped_corrected, uncorrected=remapped.remapped_uncorrected)
        if remapped.remapping_pending is not None:
            pending.add_metric([card], remapped.remapping_pending)
    yield from (throttled, errors, lifetime, rows, pending)


def _add(family: CounterMetricFamily | GaugeMetricFamily, card: str, **values: int | None) -> None:
    for kind, value in values.items():
        if value is not None:
            family.add_metric([card, kind], value)


def _xids(snapshot: Snapshot) -> Metric:
    last = _per_card("last_xid", "NVIDIA's number of the card's last driver error since gpudeck was started.")
    numbers = {event.gpu: event.xid for event in snapshot.events if event.xid is not None and event.gpu is not None}
    for card, number in numbers.items():
        last.add_metric([str(card)], number)
    return last


def _processes(readings: Iterable[Reading]) -> Metric:
    """By engine and rank, not by pid: a label that changes at each start would fill Prometheus."""
    labels = ("engine", "dp_rank", "pp_rank", "tp_rank")
    family = _per_card("process_memory_bytes", "Memory that processes hold; engine is empty for strangers.", *labels)
    held: dict[tuple[str, ...], int] = defaultdict(int)
    for reading in readings:
        for process in reading.processes:
            if process.memory_bytes is not None:
                held[(str(reading.gpu), *_owner(process))] += process.memory_bytes
    for key, size in held.items():
        family.add_metric(key, size)
    return family


def _owner(process: GpuProcess) -> tuple[str, ...]:
    ranks = (process.dp_rank, process.pp_rank, process.tp_rank)
    return process.engine or "", *("" if rank is None else str(rank) for rank in ranks)
