"""What NVML knows of the ways between cards: each card's NVLinks, each pair's PCIe ancestor and P2P status."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpudeck.services.box.links import Lane, PciAddress, Remote, remote_of
from gpudeck.services.box.nvml.ask import Asker
from gpudeck.services.box.types import PeerAccess

# GB/s in each direction, by NVLink version, where the driver does not tell the speed (NVIDIA's data sheets).
_SPEED_BY_VERSION = {1: 20.0, 2: 25.0, 3: 25.0, 4: 25.0, 5: 50.0}

# nvmlGpuP2PStatus_t in the words of `nvidia-smi topo -p2p`.
_P2P_WORDS = {0: "OK", 1: "CNS", 2: "GNS", 3: "TNS", 4: "DR", 5: "NS", 6: "U"}
# nvmlGpuP2PCapsIndex_t; pynvml's own name of the first is a tuple by a stray comma.
_READ, _WRITE, _NVLINK, _ATOMICS = range(4)


@dataclass(frozen=True, slots=True)
class ToldLane:
    """A lane, and what else the driver told of its other end."""

    lane: Lane  # its remote is the driver's word
    vendor: int | None  # PCI vendor of what it leads to


@dataclass(frozen=True, slots=True)
class Pair:
    """What the driver tells of two cards."""

    ancestor: int | None  # nvmlGpuTopologyLevel_t
    access: PeerAccess | None


def pci_address(pci: Any) -> PciAddress:
    return PciAddress(pci.domain, pci.bus, pci.device)


def told_lanes(ask: Asker) -> tuple[ToldLane, ...]:
    """The card's lanes, those that are down too.  A card without NVLink has none.  Raises CardError."""
    nvml = ask.nvml
    lanes: list[ToldLane] = []
    for number in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            up = nvml.nvmlDeviceGetNvLinkState(ask.handle, number) == nvml.NVML_FEATURE_ENABLED
        except nvml.NVMLError_InvalidArgument:
            break  # beyond the last lane of this card
        except nvml.NVMLError:
            lanes.append(ToldLane(Lane(number, None), None))
        else:
            lanes.append(_told_lane(ask, number, up))
    return tuple(lanes) if any(told.lane.up is not None for told in lanes) else ()


def resolved(told: tuple[ToldLane, ...], cards: Mapping[PciAddress, int]) -> tuple[Lane, ...]:
    """The lanes, now that it is known which cards the box has."""
    return tuple(
        replace(one.lane, remote=remote_of(one.lane.remote, one.lane.address, one.vendor, cards)) for one in told
    )


def told_pairs(ask: Asker, others: Mapping[int, Any]) -> dict[int, Pair]:
    """What the driver tells of this card and each of the others (handles by index).  Raises CardError."""
    return {index: _told_pair(ask, index, handle) for index, handle in others.items()}


def _told_lane(ask: Asker, number: int, up: bool) -> ToldLane:
    nvml, handle = ask.nvml, ask.handle
    address: PciAddress | None = None
    vendor: int | None = None
    try:
        pci = nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, number)
        if pci.pciDeviceId or pci.domain or pci.bus or pci.device:  # all zero: the driver does not know
            address, vendor = pci_address(pci), pci.pciDeviceId & 0xFFFF
    except nvml.NVMLError:
        address = vendor = None
    version = ask(f"NVLink {number} version", lambda handle: nvml.nvmlDeviceGetNvLinkVersion(handle, number))
    return ToldLane(
        Lane(number, up, _told_remote(ask, number), address, version, _speed_gbs(ask, number, version)), vendor
    )


def _told_remote(ask: Asker, number: int) -> Remote:
    nvml = ask.nvml
    try:
        told = nvml.nvmlDeviceGetNvLinkRemoteDeviceType(ask.handle, number)
    except nvml.NVMLError:
        return Remote.UNKNOWN
    return {
        nvml.NVML_NVLINK_DEVICE_TYPE_GPU: Remote.GPU,
        nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH: Remote.SWITCH,
        nvml.NVML_NVLINK_DEVICE_TYPE_IBMNPU: Remote.CPU,
    }.get(told, Remote.UNKNOWN)


def _speed_gbs(ask: Asker, number: int, version: int | None) -> float | None:
    """GB/s in each direction: what the driver tells, else what links of this version do."""
    field = (ask.nvml.NVML_FI_DEV_NVLINK_GET_SPEED, number)
    megabytes_s = ask.fields([field]).get(field)
    return megabytes_s / 1000 if megabytes_s else _SPEED_BY_VERSION.get(version or 0)


def _told_pair(ask: Asker, other: int, handle: Any) -> Pair:
    nvml = ask.nvml
    ancestor: int | None = None
    try:
        ancestor = nvml.nvmlDeviceGetTopologyCommonAncestor(ask.handle, handle)
    except nvml.NVMLError:
        ancestor = None  # a virtual machine without topology, WSL
    read, write, nvlink, atomics = (_p2p(ask, handle, what) for what in (_READ, _WRITE, _NVLINK, _ATOMICS))
    told = any((read, write, nvlink, atomics))
    return Pair(ancestor, PeerAccess(ask.index, other, read, write, nvlink, atomics) if told else None)


def _p2p(ask: Asker, other: Any, what: int) -> str | None:
    nvml = ask.nvml
    try:
        return _P2P_WORDS.get(nvml.nvmlDeviceGetP2PStatus(ask.handle, other, what))
    except nvml.NVMLError:
        return None
