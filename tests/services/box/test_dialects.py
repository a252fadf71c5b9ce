"""The same boxes as drivers of other ages and in virtual machines tell them: the matrix must not change."""

from collections.abc import Callable, Mapping

import pytest

from gpudeck.services.box.boxfile import load_box_file
from gpudeck.services.box.nvml import NvmlSource
from gpudeck.services.box.types import Box, Link
from tests.rigs.fakenvml.description import Keys
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import card
from tests.services.box.test_real_boxes import ALL, BOXES

Dialect = Callable[[Keys], Mapping[str, str | None]]


def lanes(keys: Keys) -> Keys:
    return {key: value for key, value in keys.items() if ".lane." in key}


def no_device_type(keys: Keys) -> Mapping[str, str | None]:
    """A driver before the call that tells what a lane leads to."""
    return {
        key: f"{value.split()[0]} - {value.split()[2]} {value.split()[3]}"
        for key, value in lanes(keys).items()
        if "npu" not in value
    }


def unknown_device_type(keys: Keys) -> Mapping[str, str | None]:
    """A driver that answers that call with "unknown"."""
    return {
        key: value.replace(" gpu ", " unknown ").replace(" switch ", " unknown ") for key, value in lanes(keys).items()
    }


def no_p2p(keys: Keys) -> Mapping[str, str | None]:
    return {key: None for key in keys if ".p2p." in key}


def lanes_beyond_the_last_not_supported(keys: Keys) -> Mapping[str, str | None]:
    """A driver that does not refuse a lane that the card does not have, but says that it is not supported."""
    return {key: None for key in keys if key.endswith(".lanes")}


def no_version_and_no_fields(keys: Keys) -> Mapping[str, str | None]:
    return {f"gpu.{gpu}.fields": "!FUNCTION_NOT_FOUND" for gpu in range(int(keys["count"]))}


DIALECTS = [
    no_device_type,
    unknown_device_type,
    no_p2p,
    lanes_beyond_the_last_not_supported,
    no_version_and_no_fields,
]


def matrix(box: Box) -> list[list[str]]:
    indices = [gpu.index for gpu in box.gpus]
    return [[box.link(a, b) for b in indices] for a in indices]


def read(box: Box, fake_nvml: FakeNvml, dialect: Dialect | None = None) -> Box:
    playing = fake_nvml(box)
    if dialect is not None:
        playing.change(dialect(playing.keys))
    source = NvmlSource()
    try:
        return source.open()
    finally:
        source.close()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ALL)
def test_every_real_box_in_every_dialect(name: str, dialect: Dialect, fake_nvml: FakeNvml) -> None:
    told = load_box_file(BOXES / f"{name}.json").box
    assert matrix(read(told, fake_nvml, dialect)) == matrix(told)


def joined(count: int, kinds: dict[tuple[int, int], str], otherwise: str = "SYS") -> Box:
    return Box(
        tuple(card(index) for index in range(count)),
        tuple(Link(a, b, kinds.get((a, b), otherwise)) for a in range(count) for b in range(a + 1, count)),
    )


BRIDGES = {(2 * pair, 2 * pair + 1): "NV4" for pair in range(4)}
OTHERS = {
    "one card": joined(1, {}),
    "five cards, PIX and PXB mixed": joined(5, {(0, 1): "PIX", (2, 3): "PIX", (0, 2): "PXB", (0, 3): "PXB"}, "NODE"),
    "seven cards, one left out of the switch": joined(7, {(a, 6): "SYS" for a in range(6)}, "NV18"),
    "three bridged pairs of seven cards": joined(7, dict.fromkeys(list(BRIDGES)[:3], "NV4"), "PHB"),
    "sixteen cards behind switches": joined(16, {}, "NV12"),
    "sixteen cards, PCIe alone": joined(16, {(a, a + 1): "PIX" for a in range(0, 16, 2)}, "SYS"),
    "four cards, unequal bonds": joined(4, {(0, 1): "NV8", (2, 3): "NV2", (1, 2): "NV1"}, "NODE"),
    "bridges over a PCIe switch": joined(8, BRIDGES, "PIX"),
    "two cards of one board": joined(2, {(0, 1): "PIX"}),
    "four cards of a rack on one switch": joined(4, {}, "NV18"),
}


@pytest.mark.parametrize("dialect", [None, *DIALECTS])
@pytest.mark.parametrize("name", OTHERS)
def test_boxes_of_other_shapes(name: str, dialect: Dialect | None, fake_nvml: FakeNvml) -> None:
    assert matrix(read(OTHERS[name], fake_nvml, dialect)) == matrix(OTHERS[name])


def test_a_switch_whose_bus_id_is_not_told(fake_nvml: FakeNvml) -> None:
    """GB200: the switches are outside of the machine."""
    box = joined(4, {}, "NV18")

    def far_switches(keys: Keys) -> Mapping[str, str | None]:
        return dict.fromkeys(lanes(keys), "up switch - 5") | {
            f"gpu.{gpu}.lane.{lane}": "up switch 00000000:00:00.0 5" for gpu in range(4) for lane in range(9)
        }

    assert matrix(read(box, fake_nvml, far_switches)) == matrix(box)


def test_a_switch_that_is_passed_through_to_one_virtual_machine_alone(fake_nvml: FakeNvml) -> None:
    """Two of a board's eight cards: their lanes lead to the switches, and the partition joins them."""
    box = joined(2, {}, "NV18")
    switches = {
        f"gpu.{gpu}.lane.{lane}": f"up switch 00000000:{0xC0 + lane % 4:02X}:00.0 4"
        for gpu in range(2)
        for lane in range(18)
    }
    assert matrix(read(box, fake_nvml, lambda keys: switches)) == matrix(box)


def test_cards_kept_from_a_container_are_no_peers(fake_nvml: FakeNvml) -> None:
    """Cards 0 and 1 of a cube mesh: the lanes to the others lead to cards that are not seen here."""
    box = joined(2, {(0, 1): "NV1"})

    def meshed(keys: Keys) -> Mapping[str, str | None]:
        hidden = {
            f"gpu.{gpu}.lane.{lane}": f"up gpu 00000000:{0x80 + lane:02X}:00.0 2"
            for gpu in (0, 1)
            for lane in range(1, 6)
        }
        return hidden | {f"gpu.{gpu}.lanes": "6" for gpu in (0, 1)}

    assert matrix(read(box, fake_nvml, meshed)) == matrix(box)
    told = read(box, fake_nvml, meshed).gpus[0].nvlinks
    assert [link.remote for link in told] == ["gpu", *["other"] * 5]


def test_processors_with_nvlink_of_their_own_join_no_cards(fake_nvml: FakeNvml) -> None:
    """POWER9: three lanes of each card lead to the processor beside it."""
    box = load_box_file(BOXES / "09-power9-v100-3x-nvlink-isolated.json").box
    npu = {f"gpu.{gpu.index}.lane.{lane}": f"up npu 0004:00:00.{lane} 2" for gpu in box.gpus for lane in range(3)} | {
        f"gpu.{gpu.index}.lanes": "3" for gpu in box.gpus
    }
    read_back = read(box, fake_nvml, lambda keys: npu)
    assert matrix(read_back) == matrix(box)
    assert {link.remote for gpu in read_back.gpus for link in gpu.nvlinks} == {"cpu"}


def test_a_bridge_that_is_partly_down(fake_nvml: FakeNvml) -> None:
    box = joined(4, {(0, 1): "NV4", (2, 3): "NV4"}, "PHB")

    def broken(keys: Keys) -> Mapping[str, str | None]:
        # The first pair lost two links at both ends, the second one end of one.
        down = [f"gpu.{gpu}.lane.{lane}" for gpu in (0, 1) for lane in (1, 2)] + ["gpu.2.lane.0"]
        return {key: keys[key].replace("up ", "down ") for key in down}

    told = read(box, fake_nvml, broken)
    assert (told.link(0, 1), told.link(2, 3), told.link(0, 2)) == ("NV2", "NV3", "PHB")


def test_a_bridge_that_is_wholly_down_leaves_the_way_over_pcie(fake_nvml: FakeNvml) -> None:
    box = joined(2, {(0, 1): "NV4"})

    def broken(keys: Keys) -> Mapping[str, str | None]:
        return {key: value.replace("up ", "down ") for key, value in lanes(keys).items()} | {"gpu.0.ancestor.1": "40"}

    assert matrix(read(box, fake_nvml, broken)) == [["X", "NODE"], ["NODE", "X"]]


def test_a_card_in_mig_mode_has_no_nvlink(fake_nvml: FakeNvml) -> None:
    box = joined(2, {(0, 1): "NV4"})

    def sliced(keys: Keys) -> Mapping[str, str | None]:
        return dict.fromkeys(lanes(keys)) | {"gpu.0.mig_mode": "1 1", "gpu.1.mig_mode": "1 1"}

    assert matrix(read(box, fake_nvml, sliced)) == [["X", "NODE"], ["NODE", "X"]]


def test_where_nothing_is_told_of_the_ways_it_is_said(fake_nvml: FakeNvml) -> None:
    """WSL, and virtual machines without topology."""

    def silent(keys: Keys) -> Mapping[str, str | None]:
        kept = (".name", ".compute", ".uuid", ".pci", ".memory", ".utilization")
        return {key: None for key in keys if key.startswith("gpu.") and not key.endswith(kept)}

    told = read(joined(2, {}, "PHB"), fake_nvml, silent)
    assert (told.links, told.topology_known) == ((), False)
    assert matrix(told) == [["X", "SYS"], ["SYS", "X"]]
