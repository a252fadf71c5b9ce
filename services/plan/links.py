"""Comparing groups of cards by the links between them."""

from collections.abc import Collection, Mapping
from itertools import combinations

from gpudeck.services.box.types import Box

# nvidia-smi topo -m, from the nearest to the farthest.  More bonded NVLinks are better; one beats any PCIe path.
_LEVELS = {"PIX": 5, "PXB": 4, "PHB": 3, "NODE": 2, "SYS": 1, "SOC": 1}
_MOST_GROUPS = 5000  # of 16 cards in groups of 8 there are 12,870; beyond this many the search is left


def link_rank(kind: str) -> int:
    """A number that orders link kinds: 1 for SYS up to 5 for PIX, 10 + n for n bonded NVLinks, 0 for unknown ones."""
    if kind.startswith("NV") and kind[2:].isdecimal():
        return 10 + int(kind[2:])
    return _LEVELS.get(kind, 0)


def link_table(box: Box) -> dict[tuple[int, int], str]:
    """Every ordered pair's link; `Box.link` walks the list of links, which is too slow inside a search."""
    table = {(a.index, b.index): "SYS" for a in box.gpus for b in box.gpus if a.index != b.index}
    for link in box.links:
        if link.a != link.b:
            table[link.a, link.b] = table[link.b, link.a] = link.kind
    return table


def weakest_link(box: Box, cards: Collection[int]) -> str:
    """The slowest link between any two of at least two cards: it sets the pace of their all-reduce."""
    return min((box.link(a, b) for a, b in combinations(cards, 2)), key=link_rank, default="X")


def weakest_of(table: Mapping[tuple[int, int], str], cards: Collection[int]) -> str:
    """`weakest_link` from a `link_table`."""
    return min((table[a, b] for a, b in combinations(cards, 2)), key=link_rank, default="X")


def best_group(box: Box, cards: tuple[int, ...]) -> tuple[int, ...] | None:
    """A group of as many cards that keeps the first of `cards` and is joined by NVLink where `cards` are not.

    Only cards of the first one's compute capability and at least its memory are taken into account.  None where there
    is no better group.
    """
    first = box.gpu(cards[0])
    if first is None:
        return None
    table = link_table(box)
    now = min(link_rank(table[a, b]) for a, b in combinations(cards, 2))
    if now >= link_rank("NV1"):
        return None
    others = [
        gpu.index
        for gpu in box.gpus
        if gpu.index != first.index
        and gpu.compute_capability == first.compute_capability
        and gpu.memory_bytes >= first.memory_bytes
        and link_rank(table[first.index, gpu.index]) >= link_rank("NV1")
    ]
    for number, chosen in enumerate(combinations(others, len(cards) - 1)):
        if number > _MOST_GROUPS:
            return None
        group = (first.index, *chosen)
        if min(link_rank(table[a, b]) for a, b in combinations(group, 2)) >= link_rank("NV1"):
            return group
    return None
