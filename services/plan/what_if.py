"""Cards and bridges that a box does not have, added to see what they would change; pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpudeck.services.box.types import MIB, Box, ComputeCapability, Gpu, Link
from gpudeck.services.plan.links import link_rank

BRIDGE = "NV4"  # what a bridge of two consumer or workstation cards makes
MARK = "what-if "  # stands before the name of a card that is not there


@dataclass(frozen=True, slots=True)
class NewCard:
    """One more card; `beside` is the card of the box whose place on the bus it is like, None: PHB to all."""

    card: Gpu  # its index is given when it is added
    beside: int | None = None


@dataclass(frozen=True, slots=True)
class NewBridge:
    """An NVLink bridge between two cards of the box, by index."""

    a: int
    b: int


Addition = NewCard | NewBridge


def _card(name: str, memory_mib: int, capability: tuple[int, int], bandwidth_gbs: float) -> Gpu:
    return Gpu(0, name, memory_mib * MIB, ComputeCapability(*capability), memory_bandwidth_gbs=bandwidth_gbs)


# As NVML names them, with the memory that it tells and the bandwidth of NVIDIA's data sheets.
KNOWN = (
    _card("NVIDIA H100 PCIe", 81559, (9, 0), 2039),
    _card("NVIDIA A100 80GB PCIe", 81920, (8, 0), 1935),
    _card("NVIDIA L40S", 46068, (8, 9), 864),
    _card("NVIDIA GeForce RTX 4090", 24564, (8, 9), 1008),
    _card("NVIDIA GeForce RTX 3090", 24576, (8, 6), 936),
)


def possible(box: Box, chosen: int | None) -> tuple[tuple[str, Addition], ...]:
    """What can be added, in words: another of each card that is there, bridges at the chosen card, other cards."""
    found: list[tuple[str, Addition]] = []
    names: set[str] = set()
    for gpu in box.gpus:
        if gpu.name not in names and not gpu.name.startswith(MARK):
            names.add(gpu.name)
            found.append((f"one more {gpu.name}, like GPU {gpu.index}", NewCard(gpu, gpu.index)))
    card = None if chosen is None else box.gpu(chosen)
    for gpu in box.gpus if card is not None else ():
        if card is not None and gpu is not card and link_rank(box.link(card.index, gpu.index)) < link_rank("NV1"):
            words = f"an NVLink bridge ({BRIDGE}) between GPU {card.index} and GPU {gpu.index}"
            found.append((words, NewBridge(card.index, gpu.index)))
    found += [(f"an {gpu.name}", NewCard(gpu)) for gpu in KNOWN if gpu.name not in names]
    return tuple(found)


def with_additions(box: Box, additions: Iterable[Addition]) -> Box:
    """The box as it would be; cards take the next indices, in the order in which they were added."""
    for addition in additions:
        if isinstance(addition, NewBridge):
            kept = tuple(link for link in box.links if {link.a, link.b} != {addition.a, addition.b})
            box = replace(box, links=(*kept, Link(addition.a, addition.b, BRIDGE)))
            continue
        index = 1 + max((gpu.index for gpu in box.gpus), default=-1)
        card = replace(addition.card, index=index, name=f"{MARK}{addition.card.name}", uuid=None, nvlinks=())
        box = replace(box, gpus=(*box.gpus, card), links=(*box.links, *_links(box, index, addition.beside)))
    return box


def _links(box: Box, index: int, beside: int | None) -> tuple[Link, ...]:
    """A new card reaches the others as the one beside it does, but over a bridge: that joins two and no third."""
    if beside is None:
        return tuple(Link(gpu.index, index, "PHB") for gpu in box.gpus)
    others = [gpu.index for gpu in box.gpus if gpu.index != beside]
    kinds = {other: box.link(beside, other) for other in others}
    bridged = [other for other, kind in kinds.items() if link_rank(kind) >= link_rank("NV1")]
    plain = [kind for kind in kinds.values() if link_rank(kind) < link_rank("NV1")]
    switched = len(others) > 1 and len(bridged) == len(others)
    near = max(plain, key=link_rank, default=next(iter(kinds.values()), "PHB")) if not switched else kinds[others[0]]
    if not switched and link_rank(near) >= link_rank("NV1"):
        near = "PHB"
    links = [
        Link(other, index, near if link_rank(kind) >= link_rank("NV1") and not switched else kind)
        for other, kind in kinds.items()
    ]
    return (*links, Link(beside, index, near))
