"""The fake library as programs other than gpudeck see it: pynvml's own calls, unmodified."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import pynvml
import pytest

from gpudeck.services.box.types import GIB, Box, Link
from tests.rigs.fakenvml.fixtures import FakeNvml, PlayedBox
from tests.services.box.boxes import busy, card, pair


@pytest.fixture
def playing(fake_nvml: FakeNvml) -> Iterator[PlayedBox]:
    played = fake_nvml(pair(), (busy(0), busy(1)))
    pynvml.nvmlInit()
    yield played
    pynvml.nvmlShutdown()


def test_calls_before_init_are_refused(fake_nvml: FakeNvml) -> None:
    fake_nvml(pair())
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()


def test_the_memory_calls_count_the_reserve_as_the_driver_does(playing: PlayedBox) -> None:
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    old, new = pynvml.nvmlDeviceGetMemoryInfo(handle), pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
    assert old.used == new.used + new.reserved
    assert new.total == new.used + new.reserved + new.free


def test_cards_are_found_by_uuid_and_by_bus_id(playing: PlayedBox) -> None:
    second = pynvml.nvmlDeviceGetHandleByIndex(1)
    by_uuid = pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(second))
    by_bus = pynvml.nvmlDeviceGetHandleByPciBusId(pynvml.nvmlDeviceGetPciInfo(second).busId)
    assert pynvml.nvmlDeviceGetIndex(by_uuid) == pynvml.nvmlDeviceGetIndex(by_bus) == 1
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetHandleByUUID("GPU-none")
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceGetHandleByIndex(2)


def test_lanes_lead_to_the_peer_and_end_where_the_card_has_no_more(playing: PlayedBox) -> None:
    first, second = (pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(2))
    peer = pynvml.nvmlDeviceGetPciInfo(second).busId
    assert {pynvml.nvmlDeviceGetNvLinkRemotePciInfo(first, lane).busId for lane in range(12)} == {peer}
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceGetNvLinkState(first, 12)
    assert pynvml.nvmlDeviceGetFieldValues(first, [91])[0].value.uiVal == 12
    # Pairs are told once, and asked for in either direction.
    for one, other in ((first, second), (second, first)):
        assert pynvml.nvmlDeviceGetTopologyCommonAncestor(one, other) == pynvml.NVML_TOPOLOGY_NODE
        assert pynvml.nvmlDeviceGetP2PStatus(one, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK) == 0


def test_a_full_mesh_of_more_lanes_than_cards_have_is_played_as_switches(fake_nvml: FakeNvml) -> None:
    links = tuple(Link(a, b, "NV18") for a in range(4) for b in range(a + 1, 4))
    fake_nvml(Box(tuple(card(index) for index in range(4)), links))
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, 17) == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH
    pynvml.nvmlShutdown()


def test_mig_devices_are_reached_through_their_card(playing: PlayedBox) -> None:
    playing.change(
        {
            "gpu.0.mig_mode": "1 1",
            "gpu.0.mig_devices": "7",
            "gpu.0.mig.1.uuid": "MIG-1",
            "gpu.0.mig.1.name": "NVIDIA A100-SXM4-40GB MIG 3g.20gb",
            "gpu.0.mig.1.memory": f"{20 * GIB} {GIB} 0",
            "gpu.0.mig.1.attributes": "42 3 2 0 0 0 3 3 20480",
        }
    )
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetMigMode(handle) == [1, 1]
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(handle) == 7
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, 0)
    slice_ = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, 1)
    assert pynvml.nvmlDeviceGetMemoryInfo(slice_).total == 20 * GIB
    assert pynvml.nvmlDeviceGetAttributes(slice_).gpuInstanceSliceCount == 3
    assert pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(slice_)) == 0


def test_an_event_that_happens_is_told_once(playing: PlayedBox) -> None:
    handle = pynvml.nvmlDeviceGetHandleByIndex(1)
    playing.change({"event.0": "1 8 31"})
    events = pynvml.nvmlEventSetCreate()  # after the first event: not told
    pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
    with pytest.raises(pynvml.NVMLError_Timeout):
        pynvml.nvmlEventSetWait(events, 1)
    playing.change({"event.1": "0 8 13", "event.2": "1 8 79"})  # the other card's is not asked for
    told = pynvml.nvmlEventSetWait(events, 10_000)
    assert (told.eventData, pynvml.nvmlDeviceGetIndex(told.device)) == (79, 1)
    with pytest.raises(pynvml.NVMLError_Timeout):
        pynvml.nvmlEventSetWait(events, 1)
    pynvml.nvmlEventSetFree(events)


def test_a_slow_call_takes_its_time_and_lets_other_threads_run(playing: PlayedBox) -> None:
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    playing.change({"gpu.0.power_mw.delay_us": "600000000"})
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(pynvml.nvmlDeviceGetPowerUsage(handle)), daemon=True)
    thread.start()
    assert pynvml.nvmlDeviceGetTemperature(handle, 0) == 61
    assert thread.is_alive()
    playing.change({"gpu.0.power_mw.delay_us": "20000"})
    thread.join(20)
    assert answers == [312500]


def test_another_process_plays_the_same_box(fake_nvml: FakeNvml) -> None:
    code = "import pynvml as n; n.nvmlInit(); print(n.nvmlDeviceGetCount(), n.nvmlSystemGetDriverVersion())"
    environment = fake_nvml(pair()).environment
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "2 580.95.05\n"
