"""The kinds of link in the words of `nvidia-smi topo -m`: what they mean, how they are coloured, which is slower."""

from collections.abc import Sequence
from itertools import combinations

from gpudeck.services.box.types import Box

# The legend of `nvidia-smi topo -m`, nearest first.
MEANINGS = {
    "NV#": "bonded NVLinks, # of them",
    "PIX": "one PCIe bridge at most",
    "PXB": "several PCIe bridges, not the host's",
    "PHB": "through the CPU's PCIe host bridge",
    "NODE": "between host bridges of one NUMA node",
    "SYS": "between NUMA nodes, through the socket link",
}
STYLES = {
    "X": "faint",
    "NV#": "success",
    "PIX": "text",
    "PXB": "text",
    "PHB": "text",
    "NODE": "warning",
    "SYS": "warning",
}


def kind_class(kind: str) -> str:
    """The kind without its number of lanes: NV# for NV12."""
    return "NV#" if kind.startswith("NV") else kind


def link_style(kind: str) -> str:
    """The style of a link kind; the word itself is its sign."""
    return STYLES.get(kind_class(kind), "muted")


def slowness(kind: str) -> tuple[int, int]:
    """What orders kinds from the nearest on; fewer NVLinks are slower."""
    order = list(MEANINGS)
    name = kind_class(kind)
    lanes = int(kind[2:]) if name == "NV#" and kind[2:].isdigit() else 0
    return (order.index(name) if name in order else len(order), -lanes)


def slowest(box: Box, cards: Sequence[int]) -> str:
    """The kind of link, among all pairs of two or more cards, that the group waits for."""
    return max((box.link(a, b) for a, b in combinations(cards, 2)), key=slowness)


def kinds_between(box: Box, some: Sequence[int], others: Sequence[int]) -> list[str]:
    """The kinds that occur between cards of two groups (or within one), nearest first."""
    return sorted({box.link(a, b) for a in some for b in others if a != b}, key=slowness)
