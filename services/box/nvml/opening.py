"""The box, opened: every card on a thread of its own, so that one that hangs keeps none of the others waiting."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpudeck.services.box.links import CardLanes, link_matrix, nvlinks_of
from gpudeck.services.box.nvml.card import NvmlCard, OpenedCard
from gpudeck.services.box.nvml.faults import CardError, hangs
from gpudeck.services.box.nvml.lanes import Pair, resolved
from gpudeck.services.box.own_thread import OwnThread, StillBusyError
from gpudeck.services.box.types import Gpu, Link, PeerAccess

PAIRS_PATIENCE_S = 5.0


class CardThread:
    """A card, and the thread on which it is asked."""

    def __init__(self, nvml: Any, index: int, clock: Callable[[], float]) -> None:
        self.card = NvmlCard(nvml, index, clock)
        self.thread: OwnThread[Any] = OwnThread(f"gpudeck-gpu{index}")


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways between the cards as they are now."""

    gpus: tuple[Gpu, ...]  # with their NVLinks
    links: tuple[Link, ...]
    peer_access: tuple[PeerAccess, ...]
    topology_known: bool


@dataclass
class Opened:
    """The cards of the box, and what is known of every pair of them."""

    cards: dict[int, OpenedCard] = field(default_factory=dict)
    pairs: dict[tuple[int, int], Pair] = field(default_factory=dict)

    def ways(self) -> Ways:
        """The links out of the lanes as they were told last."""
        by_address = {card.address: index for index, card in self.cards.items() if card.address is not None}
        lanes = {
            index: CardLanes(index, card.address, resolved(card.lanes, by_address))
            for index, card in sorted(self.cards.items())
        }
        ancestors = {pair: told.ancestor for pair, told in self.pairs.items() if told.ancestor is not None}
        links = link_matrix(list(lanes.values()), ancestors, self._nvlink_access)
        return Ways(
            gpus=tuple(replace(self.cards[index].gpu, nvlinks=nvlinks_of(lanes[index], by_address)) for index in lanes),
            links=links,
            peer_access=tuple(told.access for _, told in sorted(self.pairs.items()) if told.access),
            topology_known=len(links) == len(lanes) * (len(lanes) - 1) // 2,
        )

    def keep(self, indices: Iterable[int], before: "Opened") -> None:
        """Take over what was known of these cards, which can not be asked now."""
        for index in indices:
            self.cards[index] = before.cards[index]
        known = {pair: told for pair, told in before.pairs.items() if self.cards.keys() >= set(pair)}
        self.pairs = known | self.pairs

    def _nvlink_access(self, first: int, second: int) -> bool | None:
        told = self.pairs.get((min(first, second), max(first, second)))
        status = told.access.nvlink if told and told.access else None
        return None if status in (None, "U") else status == "OK"


def open_cards(
    threads: Mapping[int, CardThread], host_memory_bytes: int, patience: float
) -> tuple[Opened, dict[int, str]]:
    """Open these cards at once: those that opened, and why the others did not, by index."""
    for one in threads.values():
        one.thread.begin(lambda one=one: one.card.open(host_memory_bytes))  # type: ignore[misc]
    opened, failed = Opened(), dict[int, str]()
    deadline = time.monotonic() + patience
    for index, one in threads.items():
        try:
            opened.cards[index] = one.thread.take(deadline - time.monotonic())
        except CardError as fault:
            failed[index] = one.card.fault = str(fault)
        except StillBusyError:
            failed[index] = one.card.fault = hangs(index)
    _ask_for_pairs(threads, opened)
    return opened, failed


def _ask_for_pairs(threads: Mapping[int, CardThread], opened: Opened) -> None:
    """What is not told in time stays unknown."""
    for index in opened.cards:
        later = {other: threads[other].card.handle for other in opened.cards if other > index}
        threads[index].thread.begin(lambda card=threads[index].card, later=later: card.pairs(later))  # type: ignore[misc]
    deadline = time.monotonic() + PAIRS_PATIENCE_S
    for index in opened.cards:
        try:
            told = threads[index].thread.take(deadline - time.monotonic())
        except (CardError, StillBusyError):
            continue
        opened.pairs |= {(index, other): pair for other, pair in told.items()}
