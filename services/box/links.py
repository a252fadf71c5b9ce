"""The link between every two cards, out of what a driver knows: NVLink lanes and common PCIe ancestors.

NVML tells the state of an NVLink lane, not of a pair.  Who is at its other end tells the lane's remote PCI id: a card,
or a switch through which every card on it is reached.  NVLink goes before PCIe, as in `nvidia-smi topo -m`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from gpudeck.services.box.limits import MAX_NVLINKS
from gpudeck.services.box.types import Link, NvLink

# nvmlGpuTopologyLevel_t: the lowest ancestor that two cards have in common.  INTERNAL (0) are two chips of one board
# behind its own bridge, which nvidia-smi prints as PIX.
KINDS_BY_ANCESTOR = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}

# Whether one card reaches another over NVLink; None where the driver does not tell.
Access = Callable[[int, int], bool | None]


@dataclass(frozen=True, slots=True)
class PciAddress:
    domain: int
    bus: int
    device: int

    def __str__(self) -> str:
        return f"{self.domain:08X}:{self.bus:02X}:{self.device:02X}.0"


class Remote(Enum):
    """What an NVLink lane leads to."""

    GPU = "gpu"  # a card of this box
    SWITCH = "switch"
    CPU = "cpu"  # a processor with NVLink of its own (POWER9)
    OTHER = "other"  # a card that this machine does not have: another virtual machine's, or kept from a container
    UNKNOWN = None  # the driver does not tell


@dataclass(frozen=True, slots=True)
class Lane:
    """One NVLink of a card."""

    number: int
    up: bool | None  # None: the driver does not tell
    remote: Remote = Remote.UNKNOWN
    address: PciAddress | None = None  # of what it leads to
    version: int | None = None
    speed_gbs: float | None = None


@dataclass(frozen=True, slots=True)
class CardLanes:
    """The NVLinks of one card."""

    gpu: int
    address: PciAddress | None
    lanes: tuple[Lane, ...]

    def lanes_to(self, address: PciAddress | None) -> int:
        """How many lanes that are up lead straight to the card at that address."""
        return sum(lane.remote is Remote.GPU and lane.address == address for lane in self._up)

    @property
    def switches(self) -> frozenset[PciAddress]:
        return frozenset(lane.address for lane in self._up if lane.remote is Remote.SWITCH and lane.address)

    @property
    def lanes_to_switches(self) -> int:
        return sum(lane.remote is Remote.SWITCH for lane in self._up)

    @property
    def lanes_nowhere(self) -> int:
        """Lanes that are up and lead to something unknown, or to a card of which this machine knows nothing."""
        return sum(lane.remote in (Remote.UNKNOWN, Remote.OTHER) for lane in self._up)

    @property
    def lanes_in_doubt(self) -> int:
        """Lanes that may be up, or may lead to the card in question; any number where the card tells of none."""
        if all(lane.up is None for lane in self.lanes):
            return MAX_NVLINKS
        return self.lanes_nowhere + sum(lane.up is None for lane in self.lanes)

    @property
    def _up(self) -> list[Lane]:
        return [lane for lane in self.lanes if lane.up]


def remote_of(told: Remote, address: PciAddress | None, vendor: int | None, cards: Mapping[PciAddress, int]) -> Remote:
    """What a lane leads to.

    `told` is the driver's word, UNKNOWN where it is older than that call; `address` and PCI `vendor` are those of the
    other end, `cards` the cards of this box.
    """
    nvidia, ibm = 0x10DE, 0x1014
    if told in (Remote.SWITCH, Remote.CPU):
        return told
    if address in cards:
        return Remote.GPU
    if told is Remote.GPU:
        return Remote.OTHER
    if vendor == ibm:
        return Remote.CPU
    # What is NVIDIA's and no card of this box is a switch.
    return Remote.SWITCH if vendor == nvidia else Remote.UNKNOWN


def link_matrix(
    cards: Sequence[CardLanes], ancestors: Mapping[tuple[int, int], int], nvlink_access: Access
) -> tuple[Link, ...]:
    """The link of every pair of cards.

    `ancestors` holds nvmlGpuTopologyLevel_t by pair (lower index first), without the pairs of which the driver does
    not tell; those are left out of the answer too, unless NVLink joins them.
    """
    links = []
    for place, first in enumerate(cards):
        for second in cards[place + 1 :]:
            bonded = bonded_lanes(first, second, cards, nvlink_access)
            pair = (min(first.gpu, second.gpu), max(first.gpu, second.gpu))
            if bonded:
                links.append(Link(first.gpu, second.gpu, f"NV{bonded}"))
            elif pair in ancestors:
                links.append(Link(first.gpu, second.gpu, KINDS_BY_ANCESTOR.get(ancestors[pair], "SYS")))
    return tuple(links)


def bonded_lanes(first: CardLanes, second: CardLanes, cards: Sequence[CardLanes], nvlink_access: Access) -> int:
    """How many NVLinks join two of the cards, straight or through switches; 0 for none."""
    there, back = first.lanes_to(second.address), second.lanes_to(first.address)
    if there or back:
        # A link works where both ends say so; a card that is ill may not tell its own end.
        return min(max(there, back), there + first.lanes_in_doubt, back + second.lanes_in_doubt)
    through = min(first.lanes_to_switches, second.lanes_to_switches)
    if through:
        if first.switches & second.switches:
            return through
        # No switch in common: two boards whose switches are joined (DGX-2), or two that are apart.
        return 0 if nvlink_access(first.gpu, second.gpu) is False else through
    return min(_share(first, cards, nvlink_access, second), _share(second, cards, nvlink_access, first))


def nvlinks_of(card: CardLanes, cards: Mapping[PciAddress, int]) -> tuple[NvLink, ...]:
    """A card's NVLinks whose state is told, as the box shows them."""
    return tuple(
        NvLink(
            lane.number,
            lane.up,
            lane.version,
            lane.speed_gbs,
            lane.remote.value,
            cards.get(lane.address) if lane.address else None,
            str(lane.address) if lane.address else None,
        )
        for lane in card.lanes
        if lane.up is not None
    )


def _share(card: CardLanes, cards: Sequence[CardLanes], nvlink_access: Access, peer: CardLanes) -> int:
    """The lanes from a card to a peer where the driver tells no other end, only whom the card reaches over NVLink.

    Shared out evenly they are a mesh; where they do not go up evenly they lead to a switch, and all of them to each.
    """
    if not card.lanes_nowhere or nvlink_access(card.gpu, peer.gpu) is not True:
        return 0
    peers = sum(
        nvlink_access(card.gpu, other.gpu) is True and not card.lanes_to(other.address)
        for other in cards
        if other is not card
    )
    return card.lanes_nowhere if card.lanes_nowhere % peers else card.lanes_nowhere // peers
