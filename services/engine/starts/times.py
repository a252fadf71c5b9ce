"""How long each phase of a start took, and from earlier starts how long is left; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from gpudeck.services.engine.phases import Phase, Standing

_CONSIDERED = 3  # the last starts: the first of all compiles what later ones find in the cache
_PHASES = [phase for phase in Phase if phase.starting_up]
STILL_S = 180.0  # compiling a large model or reading a slow disk is silent for two minutes and well


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """The phases that one start has been through, in their order, each with its seconds."""

    phases: tuple[tuple[Phase, float], ...] = ()

    @property
    def total(self) -> float:
        return sum(seconds for _phase, seconds in self.phases)

    def of(self, phase: Phase) -> float:
        return sum(seconds for each, seconds in self.phases if each is phase)


def times_of(standing: Standing, began: float | None) -> PhaseTimes:
    """The phases that are over.  `began` is when the process was started, in seconds since the epoch.

    What the log does not date counts into the phase before it.
    """
    dated = _dated(standing, began)
    over = []
    for (phase, at), (_following, until) in pairwise(dated):
        if phase.starting_up:
            over.append((phase, max(until - at, 0.0)))
    return PhaseTimes(tuple(over))


def present_for(standing: Standing, began: float | None, now: float) -> float | None:
    """How long the present phase lasts already, in seconds; None where the log does not date it."""
    dated = _dated(standing, began)
    return max(now - dated[-1][1], 0.0) if dated and dated[-1][0] is standing.phase else None


def seconds_left(standing: Standing, began: float | None, now: float, earlier: Sequence[PhaseTimes]) -> float | None:
    """What earlier starts of the same spec, oldest first, say is left until it is ready; None where they say nothing.

    A phase that takes longer than it did before counts as about to end.
    """
    lasts = present_for(standing, began, now)
    if not earlier or lasts is None or not standing.phase.starting_up:
        return None
    here = _PHASES.index(standing.phase)
    rest = max(usual(earlier, standing.phase) - lasts, 0.0)
    return rest + sum(usual(earlier, phase) for phase in _PHASES[here + 1 :])


def usual(earlier: Sequence[PhaseTimes], phase: Phase) -> float:
    """How long the phase took in the last few starts, in the middle."""
    return median(times.of(phase) for times in earlier[-_CONSIDERED:]) if earlier else 0.0


def still_for(standing: Standing, began: float | None, now: float, earlier: Sequence[PhaseTimes] = ()) -> float | None:
    """For how long a start has not got any further, in seconds; None while that is no reason to look.

    Further is a following phase, or a bar that moves: a line that repeats itself is neither.
    """
    if not standing.phase.starting_up:
        return None
    moved = standing.moved_at if standing.moved_at is not None else began
    if moved is None:
        return None
    still = now - moved
    return still if still >= max(STILL_S, 2 * usual(earlier, standing.phase)) else None


def seconds_words(seconds: float) -> str:
    """`8 s`, `2 min 5 s`, `1 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(whole // 60, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def left_words(seconds: float | None) -> str:
    """`about 40 s left`, in steps that do not flicker; "" where nothing is known."""
    if seconds is None:
        return ""
    if seconds < 2.5:
        return "about to be ready"
    step = 5 if seconds < 60 else 10 if seconds < 300 else 60
    return f"about {seconds_words(max(round(seconds / step), 1) * step)} left"


def times_words(times: PhaseTimes) -> str:
    """`loading weights 31 s, compiling 12 s`: what took at least half a second."""
    return ", ".join(f"{phase.value} {seconds_words(seconds)}" for phase, seconds in times.phases if seconds >= 0.5)


def _dated(standing: Standing, began: float | None) -> list[tuple[Phase, float]]:
    dated = [(phase, at) for phase, at in standing.entered if at is not None]
    if began is not None and (not standing.entered or standing.entered[0][0] is not Phase.STARTING):
        dated.insert(0, (Phase.STARTING, min(began, dated[0][1]) if dated else began))
    return dated
