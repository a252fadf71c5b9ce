"""The cards to choose from: which are alike, which may change places, and how near they are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpudeck.services.box.types import MIB, Box, ComputeCapability, Gpu, Reading
from gpudeck.services.plan.links import link_rank, link_table

# What an idle driver and a display server's idle screen hold: less than this does not tell two cards apart.
_NOTICED = 64 * MIB
Kind = tuple[ComputeCapability, str, int, float, int, int]


@dataclass(frozen=True, slots=True)
class Cards:
    """Some cards of a box, and what the search for groups needs to know of them.

    Cards of one class may change places without a difference to anything: they are alike, as busy as each other, and
    have the same links to all others.
    """

    box: Box
    gpus: Mapping[int, Gpu]
    table: Mapping[tuple[int, int], str]  # `link_table` of the whole box
    ranks: Mapping[tuple[int, int], int]  # `link_rank` of each pair
    near: Mapping[tuple[int, int], bool]  # whether a pair hangs on the same processor
    kinds: Mapping[int, int]  # cards of the same number are alike
    taken: Mapping[int, int]  # memory that others hold, in steps that are worth noticing
    screens: frozenset[int]  # those that also draw a screen
    classes: tuple[tuple[int, ...], ...]  # by index


def cards_of(
    box: Box, used: Mapping[int, int], among: frozenset[int] | None = None, screens: frozenset[int] = frozenset()
) -> Cards:
    """The box's cards, or those `among` them; `screens` are those with a display."""
    gpus = {gpu.index: gpu for gpu in box.gpus if among is None or gpu.index in among}
    table = link_table(box)
    ranks = {pair: link_rank(kind) for pair, kind in table.items() if pair[0] in gpus and pair[1] in gpus}
    near = {(a, b): _place(gpus[a]) == _place(gpus[b]) for a, b in ranks}
    numbers: dict[Kind, int] = {}
    kinds = {index: numbers.setdefault(kind_of(gpu), len(numbers)) for index, gpu in sorted(gpus.items())}
    taken = {index: max(used.get(index, 0), 0) // _NOTICED for index in gpus}
    classes: list[list[int]] = []
    for index in sorted(gpus):
        for members in classes:
            other = members[0]
            same = kinds[index] == kinds[other] and taken[index] == taken[other]
            if same and (index in screens) == (other in screens) and _twins(index, other, ranks, near):
                members.append(index)
                break
        else:
            classes.append([index])
    return Cards(box, gpus, table, ranks, near, kinds, taken, screens, tuple(map(tuple, classes)))


def with_screens(readings: Iterable[Reading]) -> frozenset[int]:
    """The cards that also draw a screen, as far as that was read."""
    return frozenset(reading.gpu for reading in readings if reading.modes is not None and reading.modes.display_active)


def kind_of(gpu: Gpu) -> Kind:
    """What two cards must have in common to serve a plan equally well, their links aside."""
    return (
        gpu.compute_capability,
        gpu.name,
        gpu.memory_bytes,
        gpu.memory_bandwidth_gbs or 0.0,
        gpu.pcie.gen or 0,
        gpu.pcie.width or 0,
    )


def _place(gpu: Gpu) -> str | None:
    # The matrix of a virtual machine, and of some boards, says SYS or PHB everywhere: the affinity still tells.
    return gpu.numa or gpu.cpu_affinity


def _twins(a: int, b: int, ranks: Mapping[tuple[int, int], int], near: Mapping[tuple[int, int], bool]) -> bool:
    others = {card for pair in ranks for card in pair} - {a, b}
    return near[a, b] and all(
        ranks[a, other] == ranks[b, other] and near[a, other] == near[b, other] for other in others
    )
