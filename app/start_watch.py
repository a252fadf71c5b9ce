"""How far starts are: what is left by earlier ones, and what to check of one that stands still."""

from textual import on

from gpudeck.app import places
from gpudeck.app import state as states
from gpudeck.app.deck_app import PanelSetup
from gpudeck.app.messages import StartChecked, StartsRead
from gpudeck.app.plan_acts import PlanActs
from gpudeck.app.start_desk import StartDesk
from gpudeck.app.state import EngineInfo
from gpudeck.services.engine.starts.times import (
    PhaseTimes,
    left_words,
    seconds_left,
    seconds_words,
    still_for,
    times_of,
)


class StartWatch(PlanActs):
    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        self.start_desk = StartDesk(places.starts_home(), self.post_message)
        self._checked: dict[str, int | None] = {}  # the main pid of a start that was looked at while it stood still

    def start_seen(self, name: str) -> None:
        """A run of the engine has come into view."""
        info = self.state.engines.get(name)
        if info is not None:
            self.start_desk.read(info.unit)

    def start_ended(self, name: str, *, watched: bool) -> None:
        """The engine is ready; `watched` where the panel saw it become so, and not only that it was."""
        info = self.state.engines.get(name)
        if info is not None:
            times = times_of(info.standing, info.unit.since) if watched else PhaseTimes()
            self.start_desk.keep(info.unit, times)

    @on(StartsRead)
    def _starts_read(self, message: StartsRead) -> None:
        self.change(states.with_engine(self.state, message.name, kept=message.kept))

    @on(StartChecked)
    def _start_checked(self, message: StartChecked) -> None:
        info = self.state.engines.get(message.name)
        if info is not None and info.unit.main_pid == message.run and info.still:
            self.change(states.with_engine(self.state, message.name, checks=message.checks))

    def tend_starts(self, now: float) -> None:
        """Tell anew what is left of each start, at `now` in seconds since the epoch."""
        for name, info in self.state.engines.items():
            left, still = _left_and_still(info, now)
            if still and self._checked.get(name, 0) != info.unit.main_pid:
                self._checked[name] = info.unit.main_pid
                self.start_desk.check(info.unit, self.state.snapshot, self.state.program.version)
            elif not still:
                self._checked.pop(name, None)
            if (left, still) != (info.left, info.still):
                checks = info.checks if still else ()
                self.change(states.with_engine(self.state, name, left=left, still=still, checks=checks))


def _left_and_still(info: EngineInfo, now: float) -> tuple[str, str]:
    """In words that change in steps; "" for what is no start."""
    if info.word != "starting" or info.unit.spec is None:
        return "", ""
    earlier, since = info.kept.times(info.unit.spec), info.unit.since
    left = left_words(seconds_left(info.standing, since, now, earlier))
    still = still_for(info.standing, since, now, earlier)
    return left, f"nothing has moved for {seconds_words(still // 60 * 60)}" if still is not None else ""
