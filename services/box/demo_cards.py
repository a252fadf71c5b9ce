"""What a demo box leaves out of its cards, and what they would read: so that every view of the panel has something."""

from dataclasses import replace

from gpudeck.services.box.types import Box, Demand, Ecc, Gpu, LaneReading, Modes, NvLink, PeerAccess, Reading, Rows

_MOST_LANES = 18  # of any card up to Blackwell: one that would need more of them sits behind NVSwitch
_NVLINK_VERSION = {7: 2, 8: 3, 9: 4}
_SPEED_GBS = {2: 25.0, 3: 25.0, 4: 25.0, 5: 50.0}
_LANE_BYTES_S = 6e9  # over one NVLink of a busy TP group
_TOP_CLOCK_MHZ = 1980
_IDLE_CLOCK_MHZ = 210


def furnished(box: Box) -> Box:
    """The box with clocks, limits, NVLinks and peer access."""
    pairs = [(a.index, b.index) for place, a in enumerate(box.gpus) for b in box.gpus[place + 1 :]]
    return replace(
        box,
        gpus=tuple(_furnished(box, gpu) for gpu in box.gpus),
        peer_access=tuple(_access(box, a, b) for a, b in pairs),
    )


def described(gpu: Gpu, reading: Reading, demand: Demand, *, energy_j: float, busy_peers: frozenset[int]) -> Reading:
    """The reading with what the demand adds to it; `busy_peers` are the cards that work with this one."""
    busy = (reading.utilization_percent or 0) / 100
    if Demand.DETAILS in demand:
        reading = replace(
            reading,
            encoder_percent=0,
            decoder_percent=0,
            memory_temperature_c=None
            if reading.temperature_c is None or not _has_ecc(gpu)
            else reading.temperature_c + 6,
            power_limit_w=gpu.power_limit_w,
            memory_clock_mhz=gpu.memory_clock_max_mhz,
            performance_state=0 if busy else 8,
        )
    if Demand.HEALTH in demand:
        reading = replace(
            reading,
            ecc=Ecc(True, True, 0, 0, gpu.index % 3, 0) if _has_ecc(gpu) else None,
            rows=Rows(0, 0, False, False) if _has_ecc(gpu) else None,
            modes=Modes("default", True, gpu.index == 0 and not _has_ecc(gpu)),
            pcie_replays=0,
            energy_j=round(energy_j, 3),
        )
    if Demand.TRAFFIC in demand:
        lanes = tuple(
            _lane(link, busy if link.peer in busy_peers or link.remote == "switch" else 0.0) for link in gpu.nvlinks
        )
        sent = sum(lane.tx_bytes_s or 0 for lane in lanes) if lanes else None
        reading = replace(
            reading,
            pcie_tx_bytes_s=2e6 + 3e8 * busy,
            pcie_rx_bytes_s=1e6 + 9e8 * busy,
            nvlink_tx_bytes_s=sent,
            nvlink_rx_bytes_s=sent,
            lanes=lanes,
        )
    return reading


def clock_mhz(percent: int) -> int:
    return _TOP_CLOCK_MHZ if percent else _IDLE_CLOCK_MHZ


def _furnished(box: Box, gpu: Gpu) -> Gpu:
    limit = gpu.power_limit_w
    return replace(
        gpu,
        power_default_w=limit,
        power_min_w=None if limit is None else round(limit / 4),
        power_max_w=limit,
        sm_clock_max_mhz=_TOP_CLOCK_MHZ,
        memory_clock_max_mhz=1593 if _has_ecc(gpu) else 10501,
        slowdown_c=90,
        shutdown_c=95,
        memory_limit_c=95 if _has_ecc(gpu) else None,
        nvlinks=_nvlinks(box, gpu),
    )


def _nvlinks(box: Box, gpu: Gpu) -> tuple[NvLink, ...]:
    bonds = {other.index: int(box.link(gpu.index, other.index)[2:]) for other in box.gpus if _bonded(box, gpu, other)}
    version = _NVLINK_VERSION.get(gpu.compute_capability.major, 5)
    if sum(bonds.values()) > _MOST_LANES:
        return tuple(NvLink(lane, True, version, _SPEED_GBS[version], "switch") for lane in range(max(bonds.values())))
    peers = [(other, box.gpu(other)) for other, count in bonds.items() for _ in range(count)]
    return tuple(
        NvLink(lane, True, version, _SPEED_GBS[version], "gpu", other, card.pcie.bus if card else None)
        for lane, (other, card) in enumerate(peers)
    )


def _bonded(box: Box, gpu: Gpu, other: Gpu) -> bool:
    return box.link(gpu.index, other.index).startswith("NV")


def _access(box: Box, a: int, b: int) -> PeerAccess:
    """As drivers have it: over NVLink, and over PCIe between cards of a data centre."""
    nvlink = box.link(a, b).startswith("NV")
    reached = nvlink or all(card is not None and _has_ecc(card) for card in (box.gpu(a), box.gpu(b)))
    word = "OK" if reached else "CNS"
    return PeerAccess(a, b, word, word, "OK" if nvlink else "NS", "OK" if nvlink else "NS")


def _lane(link: NvLink, busy: float) -> LaneReading:
    return LaneReading(link.lane, round(_LANE_BYTES_S * busy), round(_LANE_BYTES_S * busy), 0, 0, 0)


def _has_ecc(gpu: Gpu) -> bool:
    return "GeForce" not in gpu.name
