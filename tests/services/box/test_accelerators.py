"""Accelerators of other makers, found in folders laid out as the kernel lays out /sys/bus/pci/devices."""

from pathlib import Path

import pytest

from gpudeck.services.box.accelerators import also_here, find_accelerators
from gpudeck.services.box.types import Accelerator
from tests.services.box.pci_bus import Bus

PCI_IDS = """\
# a comment
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t74a1  Aqua Vanjaram [Instinct MI300X]
\t\t1002 74a1  a board of it
8086  Intel Corporation
\t0bd5  Ponte Vecchio XT [Data Center GPU Max 1550]
C 03  Display controller
\t00  VGA compatible controller
"""


@pytest.fixture
def bus(tmp_path: Path) -> Bus:
    return Bus(tmp_path)


@pytest.mark.parametrize(
    ("kind", "vendor", "device", "maker"),
    [
        ("120000", "1002", "74a1", "AMD"),
        ("038000", "1002", "740f", "AMD"),
        ("030000", "1002", "744c", "AMD"),
        ("038000", "8086", "0bd5", "Intel"),
        ("030000", "8086", "e20b", "Intel"),
        ("120000", "1da3", "1020", "Intel Gaudi (Habana)"),
        ("120000", "19e5", "d802", "Huawei Ascend"),
        ("088000", "1ae0", "0062", "Google TPU"),
        ("120000", "1e52", "401e", "Tenstorrent"),
        ("088000", "1d0f", "7264", "AWS Neuron"),
        ("120000", "17cb", "a100", "Qualcomm Cloud AI"),
        ("120000", "1234", "0001", "A processing accelerator,"),
    ],
)
def test_an_accelerator_is_named_and_out_of_scope(bus: Bus, kind: str, vendor: str, device: str, maker: str) -> None:
    bus.plug("0000:c1:00.0", kind, vendor, device)
    assert bus.found() == [("0000:c1:00.0", maker, f"{vendor}:{device}")]
    (found,) = find_accelerators(bus.devices, (bus.names,))
    assert found.says.startswith(f"{maker} ")
    assert "out of scope" in found.says


@pytest.mark.parametrize(
    ("kind", "vendor", "device"),
    [
        ("030200", "10de", "2330"),  # NVIDIA H100
        ("068000", "10de", "22a3"),  # NVSwitch
        ("030000", "1a03", "2000"),  # a server's own console (ASPEED)
        ("030000", "102b", "0536"),  # the same by Matrox
        ("030000", "19e5", "1711"),  # Huawei's: of the maker of an accelerator, and none
        ("030000", "1d0f", "1111"),  # Amazon's virtual one
        ("020000", "8086", "1572"),  # a network card
        ("010802", "1d0f", "8061"),  # Amazon's NVMe
        ("060400", "1002", "14ba"),  # a bridge
    ],
)
def test_what_does_not_compute_or_is_nvidias_is_none(bus: Bus, kind: str, vendor: str, device: str) -> None:
    bus.plug("0000:c1:00.0", kind, vendor, device)
    assert bus.found() == []


def test_names_are_those_of_the_machines_pci_ids(bus: Bus) -> None:
    bus.names.write_text(PCI_IDS)
    bus.plug("0000:c1:00.0", "120000", "1002", "74a1")
    bus.plug("0000:29:00.0", "038000", "8086", "0bd5")
    bus.plug("0000:c2:00.0", "120000", "1002", "74ff")
    assert bus.found() == [
        ("0000:29:00.0", "Intel", "Ponte Vecchio XT [Data Center GPU Max 1550]"),
        ("0000:c1:00.0", "AMD", "Aqua Vanjaram [Instinct MI300X]"),
        ("0000:c2:00.0", "AMD", "1002:74ff"),
    ]


def test_a_part_of_a_card_is_not_counted_beside_the_card(bus: Bus) -> None:
    bus.plug("0000:c1:00.0", "120000", "1002", "74a1")
    part = bus.plug("0000:c1:02.0", "120000", "1002", "74b5")
    (part / "physfn").symlink_to("../0000:c1:00.0")
    assert [address for address, _, _ in bus.found()] == ["0000:c1:00.0"]


def test_a_device_that_tells_nothing_is_passed_over(bus: Bus, tmp_path: Path) -> None:
    (bus.devices / "0000:c1:00.0").mkdir()
    bus.plug("0000:c2:00.0", "nothing", "1002", "74a1")
    assert bus.found() == []
    assert find_accelerators(tmp_path / "no bus here") == ()


def test_all_of_them_in_one_sentence() -> None:
    eight = [Accelerator(f"0000:{place:02x}:00.0", "AMD", "Instinct MI300X") for place in range(8)]
    one = Accelerator("0000:f0:00.0", "Intel", "8086:0bd5")
    assert also_here([]) == ""
    assert also_here([*eight, one]) == (
        "This machine also has 8 × AMD Instinct MI300X, Intel 8086:0bd5: out of scope, gpudeck reads and plans NVIDIA "
        "cards only."
    )
