"""The link between every two cards, out of what a driver knows: NVLink lanes and common PCIe ancestors.

NVML tells the state of an NVLink lane, not of a pair.  Who is at its other end tells the lane's remote PCI id: a card,
or a switch through which every card on it is reached.  NVLink goes before PCIe, as in `nvidia-smi topo -m`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from gpudeck.services.box.types import Link

# nvmlGpuTopologyLevel_t: the lowest ancestor that two cards have in common.  INTERNAL (0) are two chips of one board
# behind its own bridge, which nvidia-smi prints as PIX.
KINDS_BY_ANCESTOR = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}


@dataclass(frozen=True, slots=True)
class PciAddress:
    domain: int
    bus: int
    device: int


class Remote(Enum):
    """What an NVLink lane leads to."""

    GPU = "gpu"
    SWITCH = "switch"
    OTHER = "other"  # a processor with NVLink of its own (POWER9), or a card of another virtual machine


@dataclass(frozen=True, slots=True)
class Lane:
    """One NVLink lane that is up."""

    remote: Remote
    address: PciAddress | None  # of what it leads to; None where the driver does not tell


@dataclass(frozen=True, slots=True)
class CardLanes:
    """The NVLink lanes of one card that are up."""

    gpu: int
    address: PciAddress | None
    lanes: tuple[Lane, ...]

    def lanes_to(self, address: PciAddress | None) -> int:
        """How many lanes lead straight to the card at that address."""
        if address is None:
            return 0
        return sum(lane.remote is Remote.GPU and lane.address == address for lane in self.lanes)

    @property
    def switches(self) -> frozenset[PciAddress]:
        return frozenset(lane.address for lane in self.lanes if lane.remote is Remote.SWITCH and lane.address)

    @property
    def lanes_to_switches(self) -> int:
        return sum(lane.remote is Remote.SWITCH for lane in self.lanes)


def link_matrix(
    cards: Sequence[CardLanes],
    ancestors: Mapping[tuple[int, int], int],
    nvlink_access: Callable[[int, int], bool | None],
) -> tuple[Link, ...]:
    """The link of every pair of cards.

    `ancestors` holds nvmlGpuTopologyLevel_t by pair (lower index first), without the pairs of which the driver does
    not tell; those are left out of the answer too, unless NVLink joins them.  `nvlink_access` is asked whether one card
    reaches another over NVLink (None: the driver does not tell) where lanes alone can not answer.
    """
    links = []
    for place, first in enumerate(cards):
        for second in cards[place + 1 :]:
            bonded = bonded_lanes(first, second, nvlink_access)
            pair = (min(first.gpu, second.gpu), max(first.gpu, second.gpu))
            if bonded:
                links.append(Link(first.gpu, second.gpu, f"NV{bonded}"))
            elif pair in ancestors:
                links.append(Link(first.gpu, second.gpu, KINDS_BY_ANCESTOR.get(ancestors[pair], "SYS")))
    return tuple(links)


def bonded_lanes(first: CardLanes, second: CardLanes, nvlink_access: Callable[[int, int], bool | None]) -> int:
    """How many NVLink lanes join two cards, straight or through switches; 0 for none."""
    # The larger count: a card that is ill may not tell its own side.
    straight = max(first.lanes_to(second.address), second.lanes_to(first.address))
    if straight:
        return straight
    through = min(first.lanes_to_switches, second.lanes_to_switches)
    if not through or first.switches & second.switches:
        return through
    # No switch in common: two boards whose switches are joined (DGX-2), or two that are apart.
    return 0 if nvlink_access(first.gpu, second.gpu) is False else through
