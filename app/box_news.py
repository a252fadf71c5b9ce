"""What happened to the box since the panel looked last."""

from collections.abc import Sequence

from gpudeck.services.box.types import BoxEvent, Severity, Snapshot

MOST = 3  # so many are told one by one; a bus that fails takes every card with it
# A replay moves its events by what the clock's floating point loses.
_SAME_S = 1.0


def news(before: Snapshot | None, now: Snapshot) -> tuple[BoxEvent, ...]:
    """The events of a snapshot that the one before did not hold, oldest first.

    At the first look what cards suffer from the start is in view anyway, and is no news.
    """
    if before is None or not now.events:
        return ()
    return tuple(event for event in now.events if not any(_same(event, known) for known in before.events))


def told(events: Sequence[BoxEvent]) -> list[tuple[Severity, str]]:
    """The notices for these events: each its own, and many of them as a number and the last that is worst."""
    if len(events) <= MOST:
        return [(event.severity, event.text) for event in events]
    order = (Severity.INFO, Severity.WARNING, Severity.ERROR)
    worst = max(events, key=lambda event: (order.index(event.severity), event.at))
    return [(worst.severity, f"{len(events)} things happened to the cards; the worst: {worst.text}")]


def _same(event: BoxEvent, known: BoxEvent) -> bool:
    return event.text == known.text and event.gpu == known.gpu and abs(event.at - known.at) < _SAME_S
