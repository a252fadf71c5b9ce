"""Accelerators on the PCI bus that are no NVIDIA cards."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpudeck.services.box.types import Accelerator

DEVICES = Path("/sys/bus/pci/devices")
NAMES = (Path("/usr/share/misc/pci.ids"), Path("/usr/share/hwdata/pci.ids"))  # Debian's place, and Fedora's

# Base class and subclass (PCI Code and ID Assignment Specification): 3D controller, other display controller, and
# processing accelerator.  A VGA controller (0x0300) counts only from those who make cards that compute: the others are
# the board's own, for its console.
_COMPUTES = {0x0302, 0x0380, 0x1200}
_VGA = 0x0300
# Vendors whose accelerators show as something else: Google's TPUs and Amazon's Neuron devices are "system peripherals".
_ANY_CLASS = {0x1AE0: {0x0880, 0xFF00}, 0x1D0F: {0x0880}}

_NVIDIA = 0x10DE
# pci.ids (https://pci-ids.ucw.cz) for what each number stands for; the names are those under which the cards are sold.
_VENDORS = {
    0x1002: "AMD",
    0x8086: "Intel",
    0x1DA3: "Intel Gaudi (Habana)",
    0x19E5: "Huawei Ascend",
    0x1AE0: "Google TPU",
    0x1E52: "Tenstorrent",
    0x1D0F: "AWS Neuron",
    0x17CB: "Qualcomm Cloud AI",
    0xCABC: "Cambricon",
    0x1ED5: "Moore Threads",
    0x1E36: "Enflame",
    0x1D22: "Baidu Kunlun",
    0x1D94: "Hygon",
    0x1ED2: "FuriosaAI",
    0x1D95: "Graphcore",
    0x1DE0: "Groq",
}
_MAKE_VGA_CARDS = {0x1002, 0x8086, 0x1ED5}
# Amazon's virtual console on EC2 (1d0f:1111) is a display, no accelerator.
_DISPLAYS = {(0x1D0F, 0x1111)}


def find_accelerators(devices: Path = DEVICES, names: tuple[Path, ...] = NAMES) -> tuple[Accelerator, ...]:
    """Every accelerator of another maker, by address; none where there is no PCI bus to be seen."""
    found = list(_others(devices))
    known = _names({(vendor, device) for _, vendor, device in found}, names) if found else {}
    return tuple(
        Accelerator(
            address,
            _VENDORS.get(vendor, "A processing accelerator,"),
            known.get((vendor, device), f"{vendor:04x}:{device:04x}"),
        )
        for address, vendor, device in found
    )


def also_here(found: Sequence[Accelerator]) -> str:
    """One sentence for all of them; "" where there is none."""
    if not found:
        return ""
    kinds = Counter(other.title for other in found)
    said = ", ".join(f"{count} × {kind}" if count > 1 else kind for kind, count in kinds.items())
    return f"This machine also has {said}: out of scope, gpudeck reads and plans NVIDIA cards only."


def _others(devices: Path) -> Iterator[tuple[str, int, int]]:
    try:
        folders = sorted(devices.iterdir())
    except OSError:
        return
    for folder in folders:
        kind, vendor, device = (_number(folder / name) for name in ("class", "vendor", "device"))
        if kind is None or vendor is None or device is None:
            continue
        if (folder / "physfn").exists():
            continue  # a part of a card that is listed itself (SR-IOV)
        if _accelerates(kind >> 8, vendor) and (vendor, device) not in _DISPLAYS:
            yield folder.name, vendor, device


def _accelerates(kind: int, vendor: int) -> bool:
    if vendor == _NVIDIA:
        return False
    if kind == 0x1200:
        return True  # whoever made it
    if vendor not in _VENDORS:
        return False
    return kind in _COMPUTES or (kind == _VGA and vendor in _MAKE_VGA_CARDS) or kind in _ANY_CLASS.get(vendor, ())


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(), 16)
    except (OSError, ValueError):
        return None


def _names(wanted: set[tuple[int, int]], files: tuple[Path, ...]) -> dict[tuple[int, int], str]:
    """What pci.ids calls these devices: a line for each vendor, and below it, after a tab, one for each device."""
    found: dict[tuple[int, int], str] = {}
    for path in files:
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        vendor = -1
        for line in lines:
            code, _, name = line.strip().partition("  ")
            if len(code) != 4 or line.startswith(("\t\t", "#", "C ")):
                continue
            try:
                number = int(code, 16)
            except ValueError:
                continue
            if not line.startswith("\t"):
                vendor = number
            elif (vendor, number) in wanted:
                found[vendor, number] = name
        break
    return found
