"""Waiting for an engine to be ready, with its phases told as they come."""

import argparse
import asyncio
import queue
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gpudeck.app import places
from gpudeck.app.commands.common import box_if_read, told_command
from gpudeck.app.programs import engine_program
from gpudeck.services.diagnosis.standing import of_standing
from gpudeck.services.diagnosis.types import Around
from gpudeck.services.engine.ending import status_words
from gpudeck.services.engine.listening import answers_itself
from gpudeck.services.engine.phases import Phase, PhaseTracker, Standing
from gpudeck.services.engine.program import free_port
from gpudeck.services.engine.starts.kept import StartBook
from gpudeck.services.engine.starts.times import (
    PhaseTimes,
    left_words,
    seconds_left,
    seconds_words,
    still_for,
    times_of,
    times_words,
)
from gpudeck.services.engine.types import LogLine, Runner, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.address import Address
from gpudeck.services.http.client import VllmClient
from gpudeck.services.text import printable

_BEAT_S = 0.5
# After the process has ended its last lines may still be on their way through the journal.
_LAST_LINES_S = 2.0
_INTERRUPTED = 130  # 128 + SIGINT, as a shell has it


def wait_ready(args: argparse.Namespace, runner: Runner, name: str) -> int:
    """Wait until the engine answers and return 0, or 130 where the operator will not wait.

    Says which phase it is in, how long is left by earlier starts of the same spec, and where a start stands still what
    to check.  Raises OperatorError when the engine's main process ends first: with the decisive line of its log, or
    saying that someone stopped it.
    """
    told = partial(told_command, args)
    try:
        return _wait(args, runner, name, told)
    except KeyboardInterrupt:
        goes_on = f"{name} goes on starting: `{told(f'logs -f {name}')}` follows it, `{told(f'stop {name}')}` ends it."
        print(f"\n{goes_on}", file=sys.stderr)
        return _INTERRUPTED


def _wait(args: argparse.Namespace, runner: Runner, name: str, told: Callable[[str], str]) -> int:
    state = runner.state(name)
    if state is None or state.spec is None:
        logs = told(f"logs -f {name}")
        raise OperatorError(f"{name} was not written by gpudeck, so its port is not known: follow it with `{logs}`.")
    first = state
    port = state.spec.options.port
    url = Address.of_engine(state.spec.options.host, port).url
    lines: queue.SimpleQueue[list[LogLine]] = queue.SimpleQueue()
    follower = runner.follow(name, lines.put)
    follower.start()
    book = StartBook(places.starts_home())
    tracker, began = PhaseTracker(), time.monotonic()
    teller = _Teller(args, state, book.of(state).times(state.spec), began)
    try:
        # Another's server may answer there: then this engine will not, and its log says so.
        while not (state and answers_itself(state, port) and asyncio.run(_answers(url))):
            _read(lines, tracker, _BEAT_S)
            teller.tell(tracker.standing)
            state = runner.state(name)
            if first.main_pid is None and state is not None:
                first = replace(first, main_pid=state.main_pid)
            if someone := _act_of_another(first, state):
                raise OperatorError(f"{name} was {someone} meanwhile: `{told(f'start {name}')}` starts it again.")
            if _ended(state, first.main_pid):
                _read(lines, tracker, _LAST_LINES_S)
                raise _failed(args, runner.state(name) or first, tracker, told)
        tracker.answered(time.time())
        times = times_of(tracker.standing, state.since)
        print(f"{name} is ready at {url} after {time.monotonic() - began:.0f} s.")
        if words := times_words(times):
            print(f"  {words}")
        book.keep(state, times)
        return 0
    finally:
        follower.stop()


class _Teller:
    """Prints a start's phases as they come, and once what to check where it stands still."""

    def __init__(
        self, args: argparse.Namespace, state: UnitState, earlier: tuple[PhaseTimes, ...], began: float
    ) -> None:
        self._args, self._state, self._earlier, self._began = args, state, earlier, began
        self._phase: Phase | None = None
        self._still = False

    def tell(self, standing: Standing) -> None:
        now = time.time()
        if standing.phase is not self._phase:
            self._phase, self._still = standing.phase, False
            left = left_words(seconds_left(standing, self._state.since, now, self._earlier))
            self._print(f"{standing.phase.value}{f', {left}' if left else ''}")
        still = still_for(standing, self._state.since, now, self._earlier)
        if still is None or self._still:
            return
        self._still = True
        self._print(f"{standing.phase.value}: nothing has moved for {seconds_words(still)}. What to check:")
        for line in self._checks():
            print(f"         {line}", flush=True)

    def _print(self, words: str) -> None:
        print(f"{time.monotonic() - self._began:5.0f} s  {words}", flush=True)

    def _checks(self) -> list[str]:
        from gpudeck.services.engine.starts.standstill import check_words, five_checks

        spec = self._state.spec
        assert spec is not None
        version = engine_program(demo=self._args.demo).version
        return [printable(check_words(check)) for check in five_checks(spec, box_if_read(self._args), version)]


def _act_of_another(first: UnitState, now: UnitState | None) -> str | None:
    """What someone else did to the engine that is waited for: "stopped", "restarted" or "removed"."""
    if now is None:
        return "removed"
    if now.active == "deactivating" and now.main_pid is not None and now.main_pid == first.main_pid:
        return "stopped"  # of an end that nobody asked for systemd tells only when the process is gone
    if now.active == "inactive" and now.result == "success" and (now.managed or now.exit_status):
        return "stopped"  # Restart=always leaves none inactive that ended by itself
    if now.active == "failed" and now.result == "timeout":
        return "stopped"  # and killed, since it did not leave in time
    if now.runs and now.main_pid and first.main_pid and now.main_pid != first.main_pid:
        return "restarted" if now.restarts <= first.restarts else None  # systemd counts the restarts of its own
    return None


def _ended(state: UnitState | None, first_pid: int | None) -> bool:
    if state is None or state.active in ("inactive", "failed"):
        return True
    if state.active == "deactivating":
        return False  # how it ends, and whether someone asked for that, is told when the last process is gone
    return bool(first_pid) and state.main_pid != first_pid


async def _answers(url: str) -> bool:
    async with VllmClient(url) as client:
        return await client.ready()


def _read(lines: "queue.SimpleQueue[list[LogLine]]", tracker: PhaseTracker, seconds: float) -> None:
    """Feed the tracker with what comes within `seconds`."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            for line in lines.get(timeout=left):
                tracker.feed(line.text, line.at)
        except queue.Empty:
            return


def _failed(
    args: argparse.Namespace, state: UnitState, tracker: PhaseTracker, told: Callable[[str], str]
) -> OperatorError:
    again = [what_next(state, told)] if state.between_tries else []
    line, name = tracker.standing.decisive_line, state.name
    if line:
        found = of_standing(tracker.standing, Around(box_if_read(args), state.spec, _next_port(state)))
        known = [f"{found.meaning} {found.fix or ''}".rstrip()] if found else []
        return OperatorError(f"{name} failed to start: {printable(line)}", *known, *again)
    status = f" with {status_words(state.exit_status)}" if state.exit_status is not None else ""
    return OperatorError(f"{name} ended{status} before it was ready: `{told(f'logs {name}')}` shows its log.", *again)


def what_next(state: UnitState, told: Callable[[str], str]) -> str:
    """What systemd does next with an engine that crashed, and how to end that; "" where it does nothing."""
    name = printable(state.name)
    if state.gave_up:
        return f"systemd starts it no more after so many crashes: mend it, then `{told(f'start {name}')}`."
    if not state.between_tries:
        return ""
    seconds = max(state.retry_at - time.time(), 0) if state.retry_at is not None else 0
    when = f"in {seconds:.0f} s" if seconds >= 1 else "in a moment"
    crashes = f", after {state.restarts + 1} crashes" if state.restarts else ""
    return f"systemd tries again {when}{crashes}; `{told(f'stop {name}')}` ends that."


def _next_port(state: UnitState | None) -> Callable[[int], int]:
    host = state.spec.options.host if state and state.spec else "127.0.0.1"
    return lambda port: free_port(port, host)
