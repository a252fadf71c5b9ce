"""The real pynvml on the fake library: facts and readings, what is not supported, and fallbacks for other drivers."""

import os
from dataclasses import replace

import pytest

from gpudeck.services.box import processes
from gpudeck.services.box.nvml import NvmlSource
from gpudeck.services.box.nvml.card import HEALTH_S
from gpudeck.services.box.types import (
    GIB,
    Box,
    Demand,
    Ecc,
    GpuProcess,
    LaneReading,
    MigInstance,
    Modes,
    NvLink,
    PeerAccess,
    Reading,
    Rows,
)
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import busy, card, pair
from tests.services.box.nvml.conftest import Clock

READINGS = (busy(0), busy(1))


def test_facts_and_readings_are_those_of_the_box(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    fake_nvml(pair(), READINGS)
    box = source.open()
    assert tuple(replace(gpu, nvlinks=()) for gpu in box.gpus) == pair().gpus
    assert box.gpus[0].nvlinks == tuple(NvLink(lane, True, 3, 25.0, "gpu", 1, "00000000:11:00.0") for lane in range(12))
    assert box.links == pair().links
    assert box.peer_access == (PeerAccess(0, 1, "OK", "OK", "OK", "NS"),)
    assert (box.driver, box.cuda, box.faults, box.topology_known) == ("580.95.05", "13.0", (), True)
    assert box.host_memory_bytes
    assert source.read().readings == READINGS


def test_readings_follow_the_box_as_it_changes(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    playing.change({"gpu.0.utilization": "12 3", "gpu.0.power_limit_mw": "250000", "gpu.1.fan.0": "40"})
    first, second = source.read().readings
    assert (first.utilization_percent, first.memory_utilization_percent) == (12, 3)
    assert first.power_limit_w == 250
    assert second.fan_percent == 40


@pytest.mark.parametrize(
    ("bits", "idle", "words"),
    [
        ("0x0", False, ()),
        ("0x1", True, ()),
        ("0x45", True, ("power cap", "thermal (hardware)")),
        ("0x2", False, ("application clocks",)),
        ("0x8", False, ("hardware slowdown",)),
        ("0x10", False, ("sync boost",)),
        ("0x20", False, ("thermal (software)",)),
        ("0x80", False, ("power brake",)),
        ("0x100", False, ("display clocks",)),
        ("0x40000004", False, ("power cap", "0x40000000")),  # a reason that is newer than the words
    ],
)
def test_every_reason_of_a_slow_clock_has_words(
    fake_nvml: FakeNvml, source: NvmlSource, bits: str, idle: bool, words: tuple[str, ...]
) -> None:
    fake_nvml(pair(), READINGS, **{"gpu.0.event_reasons": bits})
    source.open()
    reading = source.read().readings[0]
    assert (reading.clock_idle, reading.throttle_reasons) == (idle, words)


def test_a_card_that_tells_nothing_but_its_name_reads_none_and_no_fault(
    fake_nvml: FakeNvml, source: NvmlSource
) -> None:
    playing = fake_nvml(Box((card(0, pcie=card(0).pcie),)), ())
    needed = ("name", "compute", "uuid", "pci", "memory")
    playing.change({key: None for key in playing.keys if key.startswith("gpu.") and key.split(".")[2] not in needed})
    gpu = source.open().gpus[0]
    assert (gpu.numa, gpu.power_limit_w, gpu.slowdown_c, gpu.sm_clock_max_mhz) == (None, None, None, None)
    assert source.read().readings == (
        Reading(
            0,
            memory_used_bytes=0,
            memory_reserved_bytes=GIB // 2,
            memory_free_bytes=40 * GIB - GIB // 2,
            modes=Modes(),
        ),
    )


def test_what_is_not_supported_reads_none_and_is_asked_once(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    gone = {
        "gpu.0.power_mw": "!NOT_SUPPORTED",
        "gpu.0.utilization": "!FUNCTION_NOT_FOUND",
        "gpu.0.clock.1": "!NO_PERMISSION",
        "gpu.0.field.82": "!INVALID_ARGUMENT",
        "gpu.0.ecc_mode": "!NOT_SUPPORTED",
    }
    playing = fake_nvml(pair(), READINGS, **gone)

    def told() -> tuple[object, ...]:
        first = source.read().readings[0]
        return first.power_w, first.utilization_percent, first.sm_clock_mhz, first.memory_temperature_c, first.ecc

    source.open()
    assert told() == (None,) * 5
    assert source.read().readings[0].temperature_c == 61
    # Were it asked again it would be answered now.
    playing.change(
        {
            "gpu.0.power_mw": "100000",
            "gpu.0.utilization": "5 5",
            "gpu.0.clock.1": "900",
            "gpu.0.field.82": "50",
            "gpu.0.ecc_mode": "1 1",
        }
    )
    assert told() == (None,) * 5


def test_a_reading_that_fails_for_once_is_asked_again(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS, **{"gpu.0.power_mw": "!UNKNOWN", "gpu.0.field.82": "!UNKNOWN"})
    source.open()
    first = source.read().readings[0]
    assert (first.power_w, first.memory_temperature_c) == (None, None)
    playing.change({"gpu.0.power_mw": "100000", "gpu.0.field.82": "50"})
    first = source.read().readings[0]
    assert (first.power_w, first.memory_temperature_c) == (100.0, 50)


def test_nothing_is_read_that_nobody_looks_at(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    # Any of these calls would hang the reading.
    hanging = ["pcie_kbs.0", "ecc_mode", "energy_mj", "fields", "encoder", "pcie_gen", "remapped_rows", "pstate"]
    playing = fake_nvml(pair(), READINGS)
    source.open()
    playing.change({f"gpu.{gpu}.{key}.delay_us": "600000000" for gpu in (0, 1) for key in hanging})
    reading = source.read(Demand.NOTHING).readings[0]
    assert (reading.utilization_percent, reading.power_w, reading.temperature_c) == (87, 312.5, 61)
    assert (reading.ecc, reading.encoder_percent, reading.pcie_tx_bytes_s, reading.fault) == (None, None, None, None)


def test_what_changes_seldom_is_asked_seldom(fake_nvml: FakeNvml, source: NvmlSource, clock: Clock) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    source.read()
    playing.change({"gpu.0.ecc.1.0": "7", "gpu.0.utilization": "5 5"})
    clock.now += HEALTH_S / 2
    first = source.read().readings[0]
    assert (first.utilization_percent, first.ecc) == (5, Ecc(True, True, 0, 0, 2, 0))
    clock.now += HEALTH_S / 2
    assert source.read().readings[0].ecc == Ecc(True, True, 0, 7, 2, 0)


def test_cards_before_ampere_tell_retired_pages_and_link_errors_in_their_own_way(
    fake_nvml: FakeNvml, source: NvmlSource
) -> None:
    old = {
        "gpu.0.remapped_rows": "!NOT_SUPPORTED",
        "gpu.0.field.29": "2",
        "gpu.0.field.30": "1",
        "gpu.0.field.31": "1",
        "gpu.0.lane_errors.3.0": "8",
        "gpu.0.lane_errors.3.1": "1",
        "gpu.0.lane_errors.3.2": "5",
    }
    fake_nvml(pair(), READINGS, **old)
    source.open()
    first = source.read().readings[0]
    assert first.rows == Rows(retired_single_bit=2, retired_double_bit=1, retirement_pending=True)
    assert first.lanes == (LaneReading(3, replays=8, recoveries=1, crc_errors=5),)


def test_a_driver_without_version_2_of_the_memory_call(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    fake_nvml(pair(), READINGS, **{"gpu.0.memory_v2": "!FUNCTION_NOT_FOUND"})
    assert source.open().gpus[0].memory_bytes == 40 * GIB
    first, second = source.read().readings
    assert (first.memory_reserved_bytes, second.memory_reserved_bytes) == (None, GIB // 2)
    assert first.memory_free_bytes == second.memory_free_bytes


def test_a_driver_without_the_calls_that_cuda_14_removes(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    me = os.getpid()
    gone = {
        "gpu.0.power_mw": "!FUNCTION_NOT_FOUND",
        "gpu.0.field.186": "250000",
        "gpu.0.processes": "!FUNCTION_NOT_FOUND",
        "gpu.0.details": f"{me}:{GIB}",
    }
    fake_nvml(pair(), READINGS, **gone)
    source.open()
    readings = source.read().readings
    assert [reading.power_w for reading in readings] == [250.0, 312.5]
    assert [(process.pid, process.memory_bytes) for process in readings[0].processes] == [(me, GIB)]
    assert not readings[0].processes_hidden


def test_a_card_with_unified_memory_has_the_hosts(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    fake_nvml(Box((card(0),)), (), **{"gpu.0.memory": "!NOT_SUPPORTED"})
    box = source.open()
    gpu, reading = box.gpus[0], source.read().readings[0]
    assert (gpu.memory_bytes, gpu.unified_memory) == (box.host_memory_bytes, True)
    assert (reading.memory_used_bytes or 0) + (reading.memory_free_bytes or 0) == box.host_memory_bytes
    assert reading.memory_reserved_bytes is None


def test_processes_have_names_and_users_and_memory_where_it_is_known(
    fake_nvml: FakeNvml, source: NvmlSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a container the process numbers are the host's; these tests may run in one.
    monkeypatch.setattr(processes, "_in_a_container", lambda: False)
    me = os.getpid()
    gone = 2**22 + 1  # above the kernel's highest pid
    fake_nvml(pair(), (busy(0, GpuProcess(me, "", GIB), GpuProcess(gone, "")),), **{f"process.{gone}": "elsewhere"})
    source.open()
    mine, other = source.read().readings[0].processes
    assert (mine.pid, mine.memory_bytes) == (me, GIB)
    assert "py" in mine.name
    assert mine.user
    assert other == GpuProcess(gone, "elsewhere")


def test_a_process_that_computes_and_draws_is_one(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    me = os.getpid()
    fake_nvml(pair(), (busy(0, GpuProcess(me, "", GIB)),), **{"gpu.0.graphics": f"{me}:{GIB} 1:4096"})
    source.open()
    assert [process.pid for process in source.read().readings[0].processes] == [1, me]


def test_a_driver_that_tells_no_processes_says_so(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    fake_nvml(pair(), READINGS, **{"gpu.0.processes": "!FUNCTION_NOT_FOUND"})
    source.open()
    assert [reading.processes_hidden for reading in source.read().readings] == [True, False]


MIG = {
    "gpu.0.mig_mode": "1 1",
    "gpu.0.mig_devices": "7",
    "gpu.0.mig.0.uuid": "MIG-0",
    "gpu.0.mig.0.name": "NVIDIA A100-SXM4-40GB MIG 3g.20gb",
    "gpu.0.mig.0.memory": f"{20 * GIB} {GIB} 0",
    "gpu.0.mig.0.attributes": "42 3 2 0 0 0 3 3 20480",
    "gpu.0.mig.0.gpu_instance": "2",
    "gpu.0.mig.0.compute_instance": "0",
    "gpu.0.mig.3.uuid": "MIG-3",
    "gpu.0.mig.3.gpu_instance": "5",
    "gpu.0.utilization": "!NOT_SUPPORTED",
}


def test_a_card_in_mig_mode_shows_its_instances_and_who_is_in_them(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    fake_nvml(pair(), READINGS, **MIG, **{"gpu.0.processes": f"{os.getpid()}:{GIB}:2"})
    source.open()
    first, second = source.read().readings
    assert (first.mig_enabled, first.utilization_percent, first.fault) == (True, None, None)
    assert first.mig == (
        MigInstance(2, 0, "MIG 3g.20gb", "MIG-0", 20 * GIB, GIB, 42),
        MigInstance(5, uuid="MIG-3"),
    )
    assert [process.mig for process in first.processes] == [2]
    assert second == READINGS[1]


def test_a_card_that_leaves_mig_mode_is_asked_anew(fake_nvml: FakeNvml, source: NvmlSource, clock: Clock) -> None:
    playing = fake_nvml(pair(), READINGS, **MIG)
    source.open()
    assert source.read().readings[0].utilization_percent is None
    playing.change({"gpu.0.mig_mode": "0 0", "gpu.0.utilization": "87 40"})
    clock.now += HEALTH_S
    assert source.read().readings == READINGS
