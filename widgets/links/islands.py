"""Which cards NVLink joins and how, and which share a NUMA node; pure."""

from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from gpudeck.services.box.types import Box
from gpudeck.widgets.links.kinds import slowness

# Of any card up to Blackwell (NVLink 5): cards whose bonds would add up to more than that sit behind NVSwitch.
MOST_LANES = 18


class Joint(Enum):
    """How NVLink joins the cards of an island."""

    PAIR = "pair"
    MESH = "full mesh"  # each to each, straight
    SWITCH = "NVSwitch"
    PARTIAL = "partial mesh"  # some pairs of it go over PCIe, or over other cards


@dataclass(frozen=True, slots=True)
class Island:
    """Two or more cards that NVLink joins, straight or by way of each other."""

    cards: tuple[int, ...]
    joint: Joint
    kinds: tuple[str, ...]  # the NV# that occur, most lanes first


@dataclass(frozen=True, slots=True)
class Node:
    """The cards of one NUMA node (as nvidia-smi prints it; None where that is not told)."""

    numa: str | None
    cards: tuple[int, ...]


def islands(box: Box) -> tuple[Island, ...]:
    """Each group that NVLink joins, in the order of its lowest card; cards without NVLink to any other are in none."""
    return tuple(_island(box, cards) for cards in _joined_cards(box) if len(cards) > 1)


def nodes(box: Box) -> tuple[Node, ...]:
    """The NUMA nodes in the order of their lowest card."""
    cards: dict[str | None, list[int]] = {}
    for gpu in box.gpus:
        cards.setdefault(gpu.numa, []).append(gpu.index)
    return tuple(Node(numa, tuple(members)) for numa, members in cards.items())


def bonded(box: Box, a: int, b: int) -> bool:
    return box.link(a, b).startswith("NV")


def _joined_cards(box: Box) -> list[tuple[int, ...]]:
    groups: list[set[int]] = []
    for gpu in box.gpus:
        reached = [group for group in groups if any(bonded(box, gpu.index, other) for other in group)]
        groups = [group for group in groups if group not in reached]
        groups.append({gpu.index}.union(*reached))
    return sorted(tuple(sorted(group)) for group in groups)


def _island(box: Box, cards: tuple[int, ...]) -> Island:
    pairs = list(combinations(cards, 2))
    kinds = {box.link(a, b) for a, b in pairs if bonded(box, a, b)}
    if not all(bonded(box, a, b) for a, b in pairs):
        joint = Joint.PARTIAL
    elif _through_switch(box, cards):
        joint = Joint.SWITCH
    else:
        joint = Joint.PAIR if len(cards) == 2 else Joint.MESH
    return Island(cards, joint, tuple(sorted(kinds, key=slowness)))


def _through_switch(box: Box, cards: tuple[int, ...]) -> bool:
    lanes = [link for gpu in box.gpus if gpu.index in cards for link in gpu.nvlinks if link.up]
    if any(link.remote is not None for link in lanes):
        return any(link.remote == "switch" for link in lanes)
    first, *others = cards
    return sum(int(box.link(first, other)[2:] or 0) for other in others) > MOST_LANES
