"""Waiting for an engine to be ready, with its phases told as they come."""

import asyncio
import queue
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from gpudeck.services.diagnosis.standing import of_standing
from gpudeck.services.diagnosis.types import Around
from gpudeck.services.engine.ending import status_words
from gpudeck.services.engine.listening import answers_itself
from gpudeck.services.engine.phases import Phase, PhaseTracker
from gpudeck.services.engine.program import free_port
from gpudeck.services.engine.types import LogLine, Runner, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.address import Address
from gpudeck.services.http.client import VllmClient
from gpudeck.services.text import printable

_BEAT_S = 0.5
# After the process has ended its last lines may still be on their way through the journal.
_LAST_LINES_S = 2.0
_INTERRUPTED = 130  # 128 + SIGINT, as a shell has it


def wait_ready(runner: Runner, name: str, told: Callable[[str], str]) -> int:
    """Wait until the engine answers and return 0, or 130 where the operator will not wait.

    `told` writes a command to give next, such as "logs x".  Raises OperatorError when the engine's main process ends
    first: with the decisive line of its log, or saying that someone stopped it.
    """
    try:
        return _wait(runner, name, told)
    except KeyboardInterrupt:
        goes_on = f"{name} goes on starting: `{told(f'logs -f {name}')}` follows it, `{told(f'stop {name}')}` ends it."
        print(f"\n{goes_on}", file=sys.stderr)
        return _INTERRUPTED


def _wait(runner: Runner, name: str, told: Callable[[str], str]) -> int:
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
    tracker, began, phase = PhaseTracker(), time.monotonic(), None
    try:
        # Another's server may answer there: then this engine will not, and its log says so.
        while not (state and answers_itself(state, port) and asyncio.run(_answers(url))):
            _read(lines, tracker, _BEAT_S)
            phase = _tell(tracker, phase, began)
            state = runner.state(name)
            if first.main_pid is None and state is not None:
                first = replace(first, main_pid=state.main_pid)
            if someone := _act_of_another(first, state):
                raise OperatorError(f"{name} was {someone} meanwhile: `{told(f'start {name}')}` starts it again.")
            if _ended(state, first.main_pid):
                _read(lines, tracker, _LAST_LINES_S)
                raise OperatorError(_why(name, runner.state(name), tracker, told))
        print(f"{name} is ready at {url} after {time.monotonic() - began:.0f} s.")
        return 0
    finally:
        follower.stop()


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


def _tell(tracker: PhaseTracker, before: Phase | None, began: float) -> Phase:
    phase = tracker.standing.phase
    if phase is not before:
        print(f"{time.monotonic() - began:5.0f} s  {phase.value}")
        sys.stdout.flush()
    return phase


def _why(name: str, state: UnitState | None, tracker: PhaseTracker, told: Callable[[str], str]) -> str:
    again = f"\n{what_next(state, told)}" if state is not None and state.between_tries else ""
    line = tracker.standing.decisive_line
    if line:
        found = of_standing(tracker.standing, Around(spec=state.spec if state else None, next_port=_next_port(state)))
        known = f"\n{printable(found.meaning)} {printable(found.fix or '')}".rstrip() if found else ""
        return f"{name} failed to start: {printable(line)}{known}{again}"
    status = f" with {status_words(state.exit_status)}" if state and state.exit_status is not None else ""
    return f"{name} ended{status} before it was ready: `{told(f'logs {name}')}` shows its log.{again}"


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
