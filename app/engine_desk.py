"""Everything that the panel does with engines, away from the screen's thread.

A runner's calls block, some for a minute (a stop that waits for workers to leave).  Each act runs on a daemon thread
of its own and reports by message; one engine has one act at a time.  Leaving the panel abandons the threads: systemd,
or the embedded runner's supervisor, goes on with what was asked.
"""

import contextlib
import logging
import threading
from collections.abc import Callable

from textual.message import Message

from gpudeck.app.access import key_for
from gpudeck.app.feeds import Backlog, Post
from gpudeck.app.messages import (
    ActBegan,
    ActEnded,
    LogsArrived,
    PreviewArrived,
    RunnerFailed,
    RunnerOpened,
    UnitChanged,
    UnitsArrived,
)
from gpudeck.services.engine.types import LogFollower, LogLine, Runner, Scope, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineSpec

Act = Callable[[Runner], object]
_REOPEN_S = 5.0  # between two tries to find a runner: a bus that was dead may come back
log = logging.getLogger(__name__)

NO_RUNNER = "Engines can not be managed yet: the panel is still looking for systemd; try again in a moment."


class EngineDesk:
    """Opens the runner, watches its engines, follows their logs and does one act at a time to each."""

    def __init__(self, open_runner: Callable[[], Runner], post: Post, *, reopen: bool = False) -> None:
        """`reopen`: where there is no runner at first, try again until there is one."""
        self._open_runner = open_runner
        self._reopen = reopen
        self._closed = threading.Event()
        self._post = post
        self._runner: Runner | None = None
        self._trouble = NO_RUNNER  # why there is none
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._followers: dict[str, LogFollower] = {}
        self.logs: dict[str, Backlog[LogLine]] = {}

    def open(self) -> None:
        """Find a runner on a thread; RunnerOpened and UnitsArrived follow, or RunnerFailed, perhaps before them."""
        _in_thread("open-runner", self._open)

    def _open(self) -> None:
        """Try until there is a runner, where it makes sense to; what keeps it away is told once."""
        while (failure := self._opened()) is not None:
            if failure != self._trouble:
                self._trouble = failure
                self._post(RunnerFailed(failure))
            if not self._reopen or self._closed.wait(_REOPEN_S):
                return

    def _opened(self) -> str | None:
        """Why no runner can be had now; None where there is one."""
        try:
            runner = self._open_runner()
            # First, since what it then tells of engines makes the panel ask it for their logs.
            self._runner = runner
            runner.watch(self._changed)
        except OperatorError as error:
            self._runner = None
            return str(error)
        if self._closed.is_set():
            runner.close()
        self._refresh(runner)
        return None

    @property
    def trouble(self) -> str | None:
        """Why no engine can be managed, in one sentence; None where a runner is open."""
        return self._trouble if self._runner is None else None

    def has_key(self, name: str) -> bool:
        """Whether the engine is known to have an API key; blocks."""
        try:
            return self._required().api_key(name) is not None
        except OperatorError:
            return False

    def _changed(self, unit: UnitState) -> None:
        self._post(UnitChanged(unit))

    def preview(self, spec: EngineSpec) -> None:
        """Ask what installing `spec` would write; PreviewArrived follows."""

        def ask() -> None:
            try:
                self._post(PreviewArrived(spec, self._required().preview(spec)))
            except OperatorError as error:
                self._post(PreviewArrived(spec, None, str(error)))

        _in_thread("preview", ask)

    def ask(self, what: str, question: Callable[[Runner], Message], failed: Callable[[str], Message]) -> None:
        """Put a question to the runner on a thread; its answer is posted, or what `failed` makes of a failure."""

        def ask() -> None:
            try:
                self._post(question(self._required()))
            except OperatorError as error:
                self._post(failed(str(error)))

        _in_thread(what, ask)

    def act(self, name: str, doing: str, act: Act) -> None:
        """Do `act` to the engine; ActBegan, ActEnded and a fresh UnitsArrived follow.

        Raises OperatorError where something is being done to that engine already.
        """
        runner = self._required()
        with self._lock:
            if name in self._busy:
                raise OperatorError(f"{name} is busy: wait until what was asked of it before is done.")
            self._busy.add(name)
        self._post(ActBegan(name, doing))

        def do() -> None:
            failure = None
            try:
                act(runner)
            except OperatorError as error:
                failure = str(error)
            except Exception:
                # A defect of ours must not leave the engine marked busy for ever; it is kept for the panel's log.
                log.exception("%s %s", doing, name)
                failure = f"{doing} {name} met a defect of gpudeck; its log says where."
            finally:
                with self._lock:
                    self._busy.discard(name)
            self._post(ActEnded(name, doing, failure))
            self._refresh(runner)

        _in_thread(f"{doing}-{name}", do)

    def _refresh(self, runner: Runner) -> None:
        try:
            units = runner.engines()
        except OperatorError as error:
            self._post(RunnerFailed(str(error)))
        else:
            # Told each time: a runner that failed once is one again.
            self._post(RunnerOpened(runner.description))
            self._post(UnitsArrived(units))

    def api_key(self, name: str) -> str | None:
        """The key for requests to that engine; blocks."""
        return key_for(self._required(), name)

    def present_log(self, name: str) -> list[str]:
        """The lines of the engine's present run; blocks.  Raises OperatorError."""
        runner = self._required()
        starts = runner.starts(name)
        return [line.text for line in runner.log_of(name, starts[0])] if starts else []

    @property
    def scope(self) -> Scope | None:
        """Where new engines go; None while no runner is open."""
        return self._runner.scope if self._runner is not None else None

    def follow(self, name: str) -> Backlog[LogLine]:
        """Follow the log of the engine's present run from its beginning; what was followed before ends."""
        self.unfollow(name)
        backlog: Backlog[LogLine] = Backlog(lambda: self._post(LogsArrived()))
        self.logs[name] = backlog
        follower = self._required().follow(name, backlog.extend)
        self._followers[name] = follower
        follower.start()
        return backlog

    def unfollow(self, name: str) -> None:
        backlog = self.logs.pop(name, None)
        if backlog is not None:
            backlog.close()
        follower = self._followers.pop(name, None)
        if follower is not None:
            # Ending a follower waits for its child process; the screen does not.
            _in_thread(f"unfollow-{name}", follower.stop)

    def remove_all(self, names: list[str]) -> None:
        """Remove engines one after the other; blocks.  One that can not be removed is left, for `engines` to show."""
        for name in names:
            with contextlib.suppress(OperatorError):
                self._required().remove(name)

    @property
    def following(self) -> frozenset[str]:
        return frozenset(self._followers)

    def close(self) -> None:
        """End followers and the runner's threads; no engine is touched."""
        self._closed.set()
        for backlog in self.logs.values():
            backlog.close()
        followers, self._followers = list(self._followers.values()), {}
        enders = [_in_thread("unfollow", follower.stop) for follower in followers]
        if self._runner is not None:
            enders.append(_in_thread("close-runner", self._runner.close))
        for ender in enders:
            ender.join(2)

    @property
    def runner(self) -> Runner | None:
        """The runner, once there is one; its calls block, and are not for the screen's thread."""
        return self._runner

    def _required(self) -> Runner:
        if self._runner is None:
            raise OperatorError(self._trouble)
        return self._runner


def _in_thread(name: str, function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function, name=name, daemon=True)
    thread.start()
    return thread
