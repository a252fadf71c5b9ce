"""What NVML knows of the ways between cards, asked once when the box is opened."""

from collections.abc import Mapping
from typing import Any

from gpudeck.services.box.links import CardLanes, Lane, PciAddress, Remote, link_matrix
from gpudeck.services.box.types import Link

_NVIDIA = 0x10DE  # PCI vendor


def read_links(nvml: Any, handles: Mapping[int, Any]) -> tuple[Link, ...]:
    """The links between the cards of these handles (by index); a card that does not answer has no lanes."""
    addresses = {index: _address(nvml, handle) for index, handle in handles.items()}
    known = {address for address in addresses.values() if address is not None}
    cards = [CardLanes(index, addresses[index], _lanes(nvml, handle, known)) for index, handle in handles.items()]

    def nvlink_access(first: int, second: int) -> bool | None:
        status = _p2p_status(nvml, handles[first], handles[second], nvml.NVML_P2P_CAPS_INDEX_NVLINK)
        return None if status is None else status == nvml.NVML_P2P_STATUS_OK

    return link_matrix(cards, _ancestors(nvml, handles), nvlink_access)


def _address(nvml: Any, handle: Any) -> PciAddress | None:
    try:
        return _pci_address(nvml.nvmlDeviceGetPciInfo(handle))
    except nvml.NVMLError:
        return None


def _pci_address(pci: Any) -> PciAddress:
    return PciAddress(pci.domain, pci.bus, pci.device)


def _lanes(nvml: Any, handle: Any, cards: set[PciAddress]) -> tuple[Lane, ...]:
    lanes = []
    for number in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            up = nvml.nvmlDeviceGetNvLinkState(handle, number) == nvml.NVML_FEATURE_ENABLED
        except nvml.NVMLError_InvalidArgument:
            break  # beyond the last lane of this card
        except nvml.NVMLError:
            continue
        if up:
            lanes.append(_lane(nvml, handle, number, cards))
    return tuple(lanes)


def _lane(nvml: Any, handle: Any, number: int, cards: set[PciAddress]) -> Lane:
    try:
        pci = nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, number)
        address, vendor = _pci_address(pci), pci.pciDeviceId & 0xFFFF
    except nvml.NVMLError:
        address, vendor = None, None
    try:
        told = nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, number)
    except nvml.NVMLError:
        told = nvml.NVML_NVLINK_DEVICE_TYPE_UNKNOWN
    if told == nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
        return Lane(Remote.SWITCH, address)
    if address in cards:
        return Lane(Remote.GPU, address)
    if told == nvml.NVML_NVLINK_DEVICE_TYPE_UNKNOWN and vendor == _NVIDIA:
        # A driver older than the call: what is NVIDIA's and no card of this box is a switch.
        return Lane(Remote.SWITCH, address)
    return Lane(Remote.OTHER, address)


def _ancestors(nvml: Any, handles: Mapping[int, Any]) -> dict[tuple[int, int], int]:
    levels = {}
    for first in handles:
        for second in handles:
            if first < second:
                try:
                    levels[first, second] = nvml.nvmlDeviceGetTopologyCommonAncestor(handles[first], handles[second])
                except nvml.NVMLError:
                    continue
    return levels


def _p2p_status(nvml: Any, first: Any, second: Any, what: int) -> int | None:
    try:
        status: int = nvml.nvmlDeviceGetP2PStatus(first, second, what)
    except nvml.NVMLError:
        return None
    return status
