"""One reading of every card, each on its own thread: a card that is slow or hangs shows its last, with its age."""

import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from gpudeck.services.box.nvml.faults import CardError, hangs
from gpudeck.services.box.nvml.opening import CardThread
from gpudeck.services.box.own_thread import StillBusyError
from gpudeck.services.box.types import Demand, Reading

PATIENCE_S = 0.5  # how long a sweep waits for a card; one that is late is waited for no longer until it has come back
FIRST_PATIENCE_S = 5.0  # a driver that has slept takes its time
HEAD_START_S = (
    0.002  # cards that answer sooner are read one after the other: threads that run at once fight for the GIL
)
HANGS_S = 5.0  # a call that takes longer hangs


class Sweep:
    """Reads the cards again and again, and keeps each card's last reading."""

    def __init__(self, late: Collection[int] = ()) -> None:
        self._last: dict[int, Reading] = {}
        self._late = set(late)  # cards that are not waited for

    @property
    def late(self) -> bool:
        """Whether a call to some card is still under way."""
        return bool(self._late)

    def read(self, cards: Mapping[int, CardThread], demand: Demand) -> tuple[Reading, ...]:
        """A reading of each card, or what ails it."""
        for index, one in cards.items():
            if one.thread.has_outcome:
                self._collect(index, one, 0.0)
            if one.thread.idle:
                one.thread.begin(lambda one=one: one.card.read(demand))  # type: ignore[misc]
                one.thread.wait(HEAD_START_S)
        begun = time.monotonic()
        return tuple(self._collect(index, one, self._patience(index, begun)) for index, one in cards.items())

    def _patience(self, index: int, begun: float) -> float:
        if index in self._late:
            return 0.0
        return begun + (PATIENCE_S if index in self._last else FIRST_PATIENCE_S) - time.monotonic()

    def _collect(self, index: int, one: CardThread, patience: float) -> Reading:
        try:
            reading: Reading = one.thread.take(patience)
        except CardError as fault:
            reading = Reading(index, fault=str(fault))
        except StillBusyError:
            self._late.add(index)
            return self._last_of(index, one.thread.busy_s)
        self._late.discard(index)
        self._last[index] = reading
        return reading

    def _last_of(self, index: int, busy_s: float) -> Reading:
        """What a card that does not answer showed last; once it hangs, with that fault."""
        last = self._last.get(index, Reading(index, fault=hangs(index)))
        if busy_s < HANGS_S or last.fault:
            return last
        return replace(last, fault=hangs(index))
