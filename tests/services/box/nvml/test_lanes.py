"""NVLinks through the real pynvml: their traffic, their errors, and the links between cards that come of them."""

import pytest

from gpudeck.services.box.nvml import NvmlSource
from gpudeck.services.box.nvml.card import LINKS_S
from gpudeck.services.box.types import Box, Demand, LaneReading, Link, Severity
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import busy, card, pair
from tests.services.box.nvml.conftest import Clock

READINGS = (busy(0), busy(1))


def lanes_moving(sent: int, received: int) -> dict[str, str]:
    """What twelve lanes of GPU 0 have counted, in KiB; lane 0 has no scope of its own in the description."""
    scopes = ["", *(f".{lane}" for lane in range(1, 12))]
    return {f"gpu.0.field.138{scope}": str(sent) for scope in scopes} | {
        f"gpu.0.field.139{scope}": str(received) for scope in scopes
    }


def test_nvlink_traffic_is_a_rate_over_each_lane_and_over_all(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS)
    playing.change(lanes_moving(1000, 5000))
    source.open()
    first, second = source.read().readings
    assert first.lanes == tuple(LaneReading(lane, 0.0, 0.0) for lane in range(12))
    assert (first.nvlink_tx_bytes_s, second.nvlink_tx_bytes_s, second.lanes) == (0.0, None, ())
    playing.change(lanes_moving(1000 + 2048, 5000 + 4096))
    first = source.read().readings[0]
    rates = {lane.tx_bytes_s for lane in first.lanes}
    assert len(rates) == 1
    sent = rates.pop() or 0.0
    assert sent > 0
    assert [lane.rx_bytes_s for lane in first.lanes] == pytest.approx([2 * sent] * 12)
    assert first.nvlink_tx_bytes_s == pytest.approx(12 * sent)
    playing.change(lanes_moving(10, 10))  # reset
    first = source.read().readings[0]
    assert (first.nvlink_tx_bytes_s, first.lanes[3].rx_bytes_s) == (None, None)
    # Nobody looked for a while: no rate over that time.
    source.read(Demand.NOTHING)
    playing.change(lanes_moving(10**9, 10**9))
    assert source.read().readings[0].nvlink_tx_bytes_s == 0.0


def test_link_errors_stand_beside_the_traffic(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS, **{"gpu.0.field.161.3": "4", "gpu.0.field.163.3": "1"})
    playing.change(lanes_moving(1, 1))
    source.open()
    lanes = source.read().readings[0].lanes
    assert lanes[3] == LaneReading(3, 0.0, 0.0, replays=4, crc_errors=1)
    assert source.read(Demand.HEALTH).readings[0].lanes == (LaneReading(3, replays=4, crc_errors=1),)


def test_a_box_without_nvlink_and_topology_has_no_links_and_says_so(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(Box((card(0), card(1)), (Link(0, 1, "PHB"),)))
    playing.change({key: None for key in playing.keys if ".ancestor." in key or ".p2p." in key})
    box = source.open()
    assert (box.links, box.peer_access, box.topology_known) == ((), (), False)


def test_lanes_that_are_down_are_not_counted_and_shown(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair())
    down = {f"gpu.{gpu}.lane.3": f"down gpu 00000000:{0x11 - gpu:02X}:00.0 3" for gpu in (0, 1)}
    playing.change(down | {"gpu.0.lane.5": "!NOT_SUPPORTED", "gpu.1.lane.5": "!NOT_SUPPORTED"})
    box = source.open()
    assert box.links == (Link(0, 1, "NV10"),)
    assert [link.lane for link in box.gpus[0].nvlinks if not link.up] == [3]
    assert [link.lane for link in box.gpus[0].nvlinks] == [0, 1, 2, 3, 4, *range(6, 12)]


def test_a_driver_that_does_not_tell_what_lanes_lead_to_is_understood(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair())
    playing.change({key: value.replace(" gpu ", " - ") for key, value in playing.keys.items() if ".lane." in key})
    assert source.open().links == (Link(0, 1, "NV12"),)
    playing.change({key: "up - 00000000:C0:00.0 3" for key in playing.keys if ".lane." in key})
    source.close()
    assert source.open().links == (Link(0, 1, "NV12"),)  # through a switch
    playing.change({key: "up - - 3" for key in playing.keys if ".lane." in key})
    source.close()
    assert source.open().links == (Link(0, 1, "NV12"),)  # by access over NVLink


def test_the_speed_of_a_lane_is_the_drivers_word_or_its_versions(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    fake_nvml(pair(), (), **{"gpu.0.field.164.2": "26562"})
    speeds = [link.speed_gbs for link in source.open().gpus[0].nvlinks]
    assert speeds[1:4] == [25.0, 26.562, 25.0]


def test_links_that_go_down_and_come_up_while_watched(fake_nvml: FakeNvml, source: NvmlSource, clock: Clock) -> None:
    playing = fake_nvml(pair(), READINGS)
    first = source.open()
    lane = {f"gpu.{gpu}.lane.{number}": f"gpu 00000000:{0x11 - gpu:02X}:00.0 3" for gpu in (0, 1) for number in (3, 4)}
    playing.change({key: f"down {value}" for key, value in lane.items()})
    assert source.read().box is first  # not asked at every beat
    clock.now += LINKS_S
    snapshot = source.read()
    assert snapshot.box.links == (Link(0, 1, "NV10"),)
    assert [link.up for link in snapshot.box.gpus[0].nvlinks[2:6]] == [True, False, False, True]
    assert [(event.gpu, event.severity, event.text) for event in snapshot.events] == [
        (0, Severity.ERROR, "GPU 0: NVLinks 3, 4 went down."),
        (1, Severity.ERROR, "GPU 1: NVLinks 3, 4 went down."),
    ]
    playing.change({key: f"up {value}" for key, value in lane.items()})
    clock.now += LINKS_S
    snapshot = source.read()
    assert snapshot.box == first
    assert snapshot.events[-1].text == "GPU 1: NVLinks 3, 4 came up."
