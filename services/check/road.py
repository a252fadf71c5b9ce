"""From a unit that was changed to one that runs: the first half of a guided run."""

from collections.abc import Callable

from gpudeck.services.check.types import Item, Outcome
from gpudeck.services.engine.drift import Drift, DriftKind
from gpudeck.services.engine.types import Runner
from gpudeck.services.text import printable


def plan_words(name: str, drift: tuple[Drift, ...]) -> str:
    """What a walk will do, before it does it."""
    reload = "has systemd read its units anew, " if _stale(drift) else ""
    return f"This {reload}restarts {printable(name)} and checks it: requests in flight end."


def walk(runner: Runner, name: str, tell: Callable[[Item], object]) -> None:
    """Reload where the unit was changed on disk, and restart; each step is told as it is done.

    Blocks until the process runs anew.  Raises OperatorError, what was told before it included.
    """
    drift = runner.drift(name)
    tell(_unit(drift))
    if _stale(drift):
        runner.reload(name)
        tell(Item("reload", "reloaded", Outcome.PASSED, f"{printable(runner.description)} has read the unit"))
    runner.restart(name)
    tell(Item("restart", "restarted", Outcome.PASSED))


def _stale(drift: tuple[Drift, ...]) -> bool:
    return any(each.kind is DriftKind.ON_DISK for each in drift)


def _unit(drift: tuple[Drift, ...]) -> Item:
    if not drift:
        return Item("unit", "unit", Outcome.PASSED, "what stands on disk is loaded and runs")
    return Item("unit", "unit", Outcome.NOTE, " ".join(each.sentence for each in drift))
