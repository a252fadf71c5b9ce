"""Several engines on one box, each with cards of its own: the other way to use more cards than one engine needs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from gpudeck.services.box.types import Box
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.proposals.cards import Cards, cards_of, with_screens
from gpudeck.services.plan.proposals.grouping import Groups, groupings
from gpudeck.services.plan.proposals.objective import Objective
from gpudeck.services.plan.proposals.why import number, placed
from gpudeck.services.plan.propose import Proposal, propose, usable_cards
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.surroundings import Surroundings

_NOTHING_USED: Mapping[int, int] = MappingProxyType({})
_ALONE = Surroundings()
_MOST_ENGINES = 4


@dataclass(frozen=True, slots=True)
class Combination:
    """Engines that run side by side, each with a name, a port and cards of its own."""

    proposals: tuple[Proposal, ...]
    why: str


def combinations(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    used: Mapping[int, int] = _NOTHING_USED,
    *,
    objective: Objective = Objective.CONTEXT,
    around: Surroundings = _ALONE,
) -> tuple[Combination, ...]:
    """The few that are useful, best first; none of their engines is blocked.

    On a box of several kinds of cards one engine for each kind, then on the most of one kind two halves that the links
    make.  Names and ports are the spec's with a number, but for the first engine.
    """
    screens = with_screens(around.readings)
    cards = cards_of(box, used, usable_cards(box, model, spec, used, around), screens)
    found: list[Combination] = []
    for groups, reason in _divisions(cards):
        engines = _engines(box, model, spec, used, objective, around, groups)
        if len(engines) > 1:
            words = [placed(box, engine[0]) for engine in engines]
            told = f", each {words[0]}" if len(set(words)) == 1 else f": {', '.join(words)}"
            found.append(Combination(engines, f"{number(len(engines))} engines{told}; {reason}"))
    # Stable: ready ones first, in the order in which they were thought of.
    return tuple(sorted(found, key=lambda combination: _state(combination) is not VerdictState.READY))


def _divisions(cards: Cards) -> list[tuple[Groups, str]]:
    """How the cards are given to engines, and why."""
    kinds: dict[int, list[int]] = {}
    for card, kind in cards.kinds.items():
        kinds.setdefault(kind, []).append(card)
    ranked = sorted(kinds.values(), key=lambda members: -sum(cards.gpus[card].memory_bytes for card in members))
    found: list[tuple[Groups, str]] = []
    if 1 < len(ranked) <= _MOST_ENGINES:
        found.append(
            (
                tuple(tuple(sorted(members)) for members in ranked),
                "each runs at its own cards' speed, and one can fail or be restarted while the other serves",
            )
        )
    half = len(ranked[0]) // 2 if ranked else 0
    if half and (half > 1 or len(ranked) == 1):
        taken = {card: cards.taken[card] << 26 for card in cards.taken}
        largest = cards_of(cards.box, taken, frozenset(ranked[0]), cards.screens)
        halves = groupings(largest, half, 2)[0]
        found.append((halves, "one can be restarted or updated while the other serves"))
    return found


def _engines(
    box: Box,
    model: ModelFacts,
    spec: EngineSpec,
    used: Mapping[int, int],
    objective: Objective,
    around: Surroundings,
    groups: Groups,
) -> tuple[Proposal, ...]:
    """The best engine on each group that uses all its cards, else the best; groups where none fits are left out."""
    made: list[Proposal] = []
    for group in groups:
        beside = replace(around, neighbours=(*around.neighbours, *(engine[0] for engine in made)))
        own = _numbered(spec, len(made) + 1, beside)
        found = propose(box, model, own, used, replicas=1, objective=objective, around=beside, among=frozenset(group))
        whole = [proposal for proposal in found if len(proposal[0].placement.gpus) == len(group)]
        if found:
            made.append((whole or found)[0])
    return tuple(made)


def _numbered(spec: EngineSpec, place: int, beside: Surroundings) -> EngineSpec:
    if place == 1:
        return spec
    names = {neighbour.name for neighbour in beside.neighbours}
    ports = {neighbour.options.port for neighbour in beside.neighbours}
    name = next(name for count in range(place, place + len(names) + 1) if (name := f"{spec.name}-{count}") not in names)
    port = next(port for port in range(spec.options.port + 1, spec.options.port + len(ports) + 2) if port not in ports)
    return replace(spec, name=name, options=replace(spec.options, port=port))


def _state(combination: Combination) -> VerdictState:
    states = {judgement.state for _, judgement, _ in combination.proposals}
    return VerdictState.CAUTION if VerdictState.CAUTION in states else VerdictState.READY
