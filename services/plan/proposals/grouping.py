"""Which cards go together: disjoint TP groups, the best linked first.

A group is taken as a pattern, how many cards of each class it has: cards of one class may change places, so that eight
equal cards on one switch have a single way to make two groups of four.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gpudeck.services.box.types import ComputeCapability
from gpudeck.services.plan.proposals.cards import Cards

Groups = tuple[tuple[int, ...], ...]
# Up to this many cards every grouping is looked at.  Beyond, for each quality of links that the groups can have at
# their weakest, as many groupings as this, in as many steps.
_EXACT_CARDS = 8
_LEAVES = 24
_STEPS = 1500


@dataclass(frozen=True, slots=True)
class _Pattern:
    counts: tuple[tuple[int, int], ...]  # (class, cards of it), by class
    alike: bool  # all of one kind
    weakest: int
    total: int
    near: int

    @property
    def order(self) -> tuple[bool, int, int, int]:
        return self.alike, self.weakest, self.total, self.near


def quality(cards: Cards, groups: Groups) -> tuple[int, ...]:
    """How well the groups are put together, the best highest.

    Groups of one kind of card, then the weakest link of all groups (NVLink, then the PCIe level), all links together,
    the newer cards, cards on the same processor, cards that nobody uses, and cards without a screen.
    """
    weakest, total, near, mixed = 1 << 20, 0, 0, 0
    for group in groups:
        mixed += len({cards.kinds[card] for card in group}) > 1
        for place, a in enumerate(group):
            for b in group[place + 1 :]:
                rank = cards.ranks[a, b]
                weakest = min(weakest, rank)
                total += rank
                near += cards.near[a, b]
    members = [card for group in groups for card in group]
    newest = sum(_number(cards.gpus[card].compute_capability) for card in members)
    taken, screens = sum(cards.taken[card] for card in members), sum(card in cards.screens for card in members)
    return -mixed, weakest, total, newest, near, -taken, -screens


def _number(capability: ComputeCapability) -> int:
    return capability.major * 10 + capability.minor


def groupings(cards: Cards, size: int, count: int, *, mixed: bool = False) -> list[Groups]:
    """Ways to make `count` disjoint groups of `size` cards, the best put together first; see `Grouper`."""
    return Grouper(cards, mixed=mixed).groupings(size, count)


class Grouper:
    """Makes groups out of some cards, and remembers what it made.

    A group mixes compute capabilities only where `mixed` allows it.
    """

    def __init__(self, cards: Cards, *, mixed: bool = False) -> None:
        self._cards, self._mixed = cards, mixed
        self._patterns: dict[int, list[_Pattern]] = {}
        self._made: dict[tuple[int, int], list[Groups]] = {}

    def groupings(self, size: int, count: int) -> list[Groups]:
        """Ways to make `count` disjoint groups of `size` cards, the best put together first.

        Of groupings that differ by cards of one class there is one.  Up to eight cards these are all; beyond, the best
        linked ones.
        """
        if size < 1 or count < 1 or size * count > len(self._cards.gpus):
            return []
        if (size, count) not in self._made:
            self._made[size, count] = self._make(size, count)
        return self._made[size, count]

    def _make(self, size: int, count: int) -> list[Groups]:
        cards = self._cards
        if size not in self._patterns:
            made = _patterns(cards, size, mixed=self._mixed)
            self._patterns[size] = sorted(made, key=lambda pattern: pattern.order, reverse=True)
        patterns = self._patterns[size]
        found: dict[Groups, None] = {}
        if len(cards.gpus) <= _EXACT_CARDS:
            found.update(dict.fromkeys(_Search(cards, patterns, size, count).leaves()))
        else:
            for weakest in sorted({pattern.weakest for pattern in patterns}, reverse=True):
                allowed = [pattern for pattern in patterns if pattern.weakest >= weakest]
                found.update(dict.fromkeys(_Search(cards, allowed, size, count, _LEAVES, _STEPS).leaves()))
        return sorted(found, key=lambda groups: (*(-part for part in quality(cards, groups)), groups))


def _patterns(cards: Cards, size: int, *, mixed: bool) -> Iterator[_Pattern]:
    """Every pattern of that size."""
    for counts in _counts(cards, size, 0, frozenset(), mixed=mixed):
        members = [card for number, count in counts for card in cards.classes[number][:count]]
        pairs = [(a, b) for place, a in enumerate(members) for b in members[place + 1 :]]
        yield _Pattern(
            counts,
            len({cards.kinds[card] for card in members}) == 1,
            min((cards.ranks[pair] for pair in pairs), default=0),
            sum(cards.ranks[pair] for pair in pairs),
            sum(cards.near[pair] for pair in pairs),
        )


def _counts(
    cards: Cards, size: int, start: int, seen: frozenset[ComputeCapability], *, mixed: bool
) -> Iterator[tuple[tuple[int, int], ...]]:
    if size == 0:
        yield ()
        return
    for number in range(start, len(cards.classes)):
        capability = cards.gpus[cards.classes[number][0]].compute_capability
        if seen and capability not in seen and not mixed:
            continue
        for count in range(min(size, len(cards.classes[number])), 0, -1):
            for rest in _counts(cards, size - count, number + 1, seen | {capability}, mixed=mixed):
                yield ((number, count), *rest)


class _Search:
    """Puts patterns together.  The first class that has cards left gets a group with it, or stays out from then on."""

    def __init__(
        self, cards: Cards, patterns: list[_Pattern], size: int, count: int, leaves: int = 0, steps: int = 0
    ) -> None:
        self._cards, self._size, self._count = cards, size, count
        self._leaves, self._steps = leaves, steps  # 0: without a limit
        # By the first class of a pattern: the only ones that can cover it, once the classes before it are done.
        self._by_first: dict[int, list[_Pattern]] = {}
        for pattern in patterns:
            self._by_first.setdefault(pattern.counts[0][0], []).append(pattern)

    def leaves(self) -> list[Groups]:
        found: list[Groups] = []
        left = [len(members) for members in self._cards.classes]
        self._visit(0, 0, left, sum(left) - self._size * self._count, [], found)
        return found

    def _visit(
        self, number: int, start: int, left: list[int], slack: int, chosen: list[_Pattern], found: list[Groups]
    ) -> None:
        if self._leaves and (len(found) >= self._leaves or self._steps <= 0):
            return
        self._steps -= 1
        if len(chosen) == self._count:
            found.append(self._concrete(chosen))
            return
        if number == len(left):
            return
        patterns = self._by_first.get(number, [])
        for place in range(start, len(patterns)):
            pattern = patterns[place]
            if all(left[at] >= count for at, count in pattern.counts):
                for at, count in pattern.counts:
                    left[at] -= count
                chosen.append(pattern)
                self._visit(number, place, left, slack, chosen, found)
                chosen.pop()
                for at, count in pattern.counts:
                    left[at] += count
        if left[number] <= slack:
            unused, left[number] = left[number], 0
            self._visit(number + 1, 0, left, slack - unused, chosen, found)
            left[number] = unused

    def _concrete(self, chosen: list[_Pattern]) -> Groups:
        given = [0] * len(self._cards.classes)
        groups = []
        for pattern in chosen:
            group: list[int] = []
            for number, count in pattern.counts:
                group += self._cards.classes[number][given[number] : given[number] + count]
                given[number] += count
            groups.append(tuple(sorted(group)))
        return tuple(sorted(groups))
