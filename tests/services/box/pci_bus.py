"""A PCI bus of plain folders, laid out as the kernel lays out /sys/bus/pci/devices."""

from pathlib import Path

from gpudeck.services.box.accelerators import find_accelerators


class Bus:
    def __init__(self, folder: Path) -> None:
        self.devices = folder / "devices"
        self.devices.mkdir()
        self.names = folder / "pci.ids"

    def plug(self, address: str, kind: str, vendor: str, device: str) -> Path:
        folder = self.devices / address
        folder.mkdir()
        for name, value in (("class", kind), ("vendor", vendor), ("device", device)):
            (folder / name).write_text(f"0x{value}\n")
        return folder

    def found(self) -> list[tuple[str, str, str]]:
        return [(found.address, found.vendor, found.name) for found in find_accelerators(self.devices, (self.names,))]
