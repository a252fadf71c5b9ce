"""The real pynvml on the fake library: readings, what is not supported, and cards that fail and come back."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gpudeck.services.box.nvml import NvmlSource
from gpudeck.services.box.nvml.source import REOPEN_S
from gpudeck.services.box.types import GIB, Box, GpuProcess, Link, NvLink, Reading
from gpudeck.services.errors import OperatorError
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import busy, card, pair

READINGS = (busy(0), busy(1))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def source(clock: Clock) -> Iterator[NvmlSource]:
    source = NvmlSource(clock)
    yield source
    source.close()


def test_facts_and_readings_are_those_of_the_box(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    fake_nvml(pair(), READINGS)
    box = source.open()
    assert tuple(replace(gpu, nvlinks=()) for gpu in box.gpus) == pair().gpus
    assert box.gpus[0].nvlinks == tuple(NvLink(lane, True, 3, 25.0, "gpu", 1, "00000000:11:00.0") for lane in range(12))
    assert box.links == pair().links
    assert (box.driver, box.cuda, box.faults) == ("580.95.05", "13.0", ())
    assert box.host_memory_bytes
    assert source.read().readings == READINGS


def test_readings_follow_the_box_as_it_changes(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    playing.change({"gpu.0.utilization": "12 3", "gpu.0.event_reasons": "0x45", "gpu.1.fan.0": "40"})
    first, second = source.read().readings
    assert (first.utilization_percent, first.memory_utilization_percent) == (12, 3)
    assert first.throttle_reasons == ("power cap", "thermal (hardware)")
    assert second.fan_percent == 40


def test_a_box_without_nvlink_and_topology_has_no_links(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(Box((card(0), card(1)), (Link(0, 1, "PHB"),)))
    playing.change({"gpu.0.ancestor.1": None})
    assert source.open().links == ()


def test_lanes_that_are_down_are_not_counted(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair())
    down = {f"gpu.{gpu}.lane.3": f"down gpu 00000000:{0x11 - gpu:02X}:00.0 3" for gpu in (0, 1)}
    playing.change(down | {"gpu.0.lane.5": "!NOT_SUPPORTED", "gpu.1.lane.5": "!NOT_SUPPORTED"})
    assert source.open().links == (Link(0, 1, "NV10"),)


def test_a_driver_that_does_not_tell_what_lanes_lead_to_is_understood(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair())
    playing.change({key: value.replace(" gpu ", " - ") for key, value in playing.keys.items() if ".lane." in key})
    assert source.open().links == (Link(0, 1, "NV12"),)
    playing.change({key: "up - 00000000:C0:00.0 3" for key in playing.keys if ".lane." in key})
    assert source.open().links == (Link(0, 1, "NV12"),)  # through a switch


def test_what_is_not_supported_reads_none_and_is_asked_once(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS)
    playing.change(
        {"gpu.0.power_mw": None, "gpu.0.utilization": "!FUNCTION_NOT_FOUND", "gpu.0.clock.1": "!NO_PERMISSION"}
    )
    source.open()
    first = source.read().readings[0]
    assert (first.power_w, first.utilization_percent, first.sm_clock_mhz) == (None, None, None)
    assert first.temperature_c == 61
    # Were it asked again it would be answered now.
    playing.change({"gpu.0.power_mw": "100000", "gpu.0.utilization": "5 5", "gpu.0.clock.1": "900"})
    first = source.read().readings[0]
    assert (first.power_w, first.utilization_percent, first.sm_clock_mhz) == (None, None, None)


def test_a_reading_that_fails_for_once_is_asked_again(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS, **{"gpu.0.power_mw": "!UNKNOWN"})
    source.open()
    assert source.read().readings[0].power_w is None
    playing.change({"gpu.0.power_mw": "100000"})
    assert source.read().readings[0].power_w == 100.0


def test_a_driver_without_version_2_of_the_memory_call(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    fake_nvml(pair(), READINGS, **{"gpu.0.memory_v2": "!FUNCTION_NOT_FOUND"})
    assert source.open().gpus[0].memory_bytes == 40 * GIB
    first, second = source.read().readings
    assert (first.memory_reserved_bytes, second.memory_reserved_bytes) == (None, GIB // 2)
    assert first.memory_free_bytes == second.memory_free_bytes


def test_a_driver_without_the_calls_that_cuda_14_removes(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    gone = {"gpu.0.power_mw": "!FUNCTION_NOT_FOUND", "gpu.0.field.186": "250000"}
    fake_nvml(pair(), READINGS, **gone)
    source.open()
    assert [reading.power_w for reading in source.read().readings] == [250.0, 312.5]


def test_a_card_with_unified_memory_has_the_hosts(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    fake_nvml(Box((card(0),)), (), **{"gpu.0.memory": "!NOT_SUPPORTED"})
    box = source.open()
    gpu, reading = box.gpus[0], source.read().readings[0]
    assert (gpu.memory_bytes, gpu.unified_memory) == (box.host_memory_bytes, True)
    assert (reading.memory_used_bytes or 0) + (reading.memory_free_bytes or 0) == box.host_memory_bytes
    assert reading.memory_reserved_bytes is None


def test_a_lost_card_tells_its_fault_while_the_others_go_on(
    fake_nvml: FakeNvml, source: NvmlSource, clock: Clock
) -> None:
    playing = fake_nvml(pair(), READINGS)
    box = source.open()
    playing.change({"gpu.1.fault": "!GPU_IS_LOST"})
    for _ in range(3):
        snapshot = source.read()
        assert snapshot.box == box
        assert snapshot.readings[0] == READINGS[0]
        fault = snapshot.readings[1].fault or ""
        assert fault.startswith("GPU 1 has fallen off the bus")
        assert snapshot.readings[1] == Reading(1, fault=fault)
        clock.now += REOPEN_S
    playing.change({"gpu.1.fault": None})
    assert source.read().readings == READINGS
    assert source.read().box == box


def test_a_card_that_comes_back_between_two_openings_of_the_library_is_found(
    fake_nvml: FakeNvml, source: NvmlSource
) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    playing.change({"gpu.0.fault": "!GPU_IS_LOST"})
    assert source.read().readings[0].fault
    playing.change({"gpu.0.fault": None})
    assert source.read().readings == READINGS


@pytest.mark.parametrize(
    ("error", "told"),
    [("RESET_REQUIRED", "wants a reset"), ("TIMEOUT", "did not answer"), ("UNKNOWN", "nothing but errors: Unknown")],
)
def test_other_faults_of_a_card(fake_nvml: FakeNvml, source: NvmlSource, error: str, told: str) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    playing.change({"gpu.0.fault": f"!{error}"})
    first, second = source.read().readings
    assert told in (first.fault or "")
    assert second == READINGS[1]


def test_the_loss_of_all_cards_is_the_loss_of_the_box(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    playing.change({"gpu.0.fault": "!GPU_IS_LOST", "gpu.1.fault": "!GPU_IS_LOST"})
    with pytest.raises(OperatorError, match="GPU 0 has fallen off the bus"):
        source.read()
    source.close()
    with pytest.raises(OperatorError, match="GPU 0 has fallen off the bus"):
        source.open()
    playing.change({"gpu.0.fault": None, "gpu.1.fault": None})
    source.open()
    assert source.read().readings == READINGS


def test_a_card_that_can_not_be_opened_is_told_and_joins_when_it_can(
    fake_nvml: FakeNvml, source: NvmlSource, clock: Clock
) -> None:
    playing = fake_nvml(pair(), READINGS, **{"gpu.1.handle": "!NO_PERMISSION"})
    box = source.open()
    assert [gpu.index for gpu in box.gpus] == [0]
    assert box.faults == ("GPU 1 may not be opened by this user: ask for access to /dev/nvidia1.",)
    playing.change({"gpu.1.handle": None})
    assert source.read().readings == READINGS[:1]
    clock.now += REOPEN_S
    snapshot = source.read()
    assert snapshot.readings == READINGS
    assert snapshot.box.links == pair().links
    assert snapshot.box.faults == ()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("DRIVER_NOT_LOADED", "modprobe nvidia"),
        ("LIB_RM_VERSION_MISMATCH", "of two versions, as after an update: reboot"),
        ("NO_PERMISSION", "may not open the NVIDIA devices"),
        ("UNKNOWN", "can not be read: Unknown Error"),
    ],
)
def test_a_library_that_does_not_open(fake_nvml: FakeNvml, source: NvmlSource, error: str, told: str) -> None:
    playing = fake_nvml(pair(), READINGS, init=f"!{error}")
    with pytest.raises(OperatorError, match=told):
        source.open()
    playing.change({"init": None})
    source.open()
    assert source.read().readings == READINGS


def test_a_driver_without_cards(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    fake_nvml(pair(), (), count="0")
    with pytest.raises(OperatorError, match="finds no GPU"):
        source.open()


def test_a_machine_without_the_library() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    code = "from gpudeck.services.box.nvml import NvmlSource\nNvmlSource().open()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith(
        "gpudeck.services.errors.OperatorError: No NVIDIA driver is installed here"
    )


def test_processes_have_names_and_users_and_memory_where_it_is_known(fake_nvml: FakeNvml, source: NvmlSource) -> None:
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
