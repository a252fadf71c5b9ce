"""Waiting for an engine to be ready, with its phases told as they come."""

import asyncio
import queue
import sys
import time
from collections.abc import Callable

from gpudeck.services.diagnosis.standing import of_standing
from gpudeck.services.diagnosis.types import Around
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


def wait_ready(runner: Runner, name: str, logs: str) -> int:
    """Wait until the engine answers and return 0; `logs` is the command that shows its log.

    Raises OperatorError with the decisive line of its log when its main process ends first, however systemd goes on to
    restart it.
    """
    state = runner.state(name)
    if state is None or state.spec is None:
        raise OperatorError(f"{name} was not written by gpudeck, so its port is not known: follow it with `{logs}`.")
    first_pid = state.main_pid
    port = state.spec.options.port
    url = Address.of_engine(state.spec.options.host, port).url
    lines: queue.SimpleQueue[list[LogLine]] = queue.SimpleQueue()
    follower = runner.follow(name, lines.put)
    follower.start()
    tracker, began, told = PhaseTracker(), time.monotonic(), None
    try:
        # Another's server may answer there: then this engine will not, and its log says so.
        while not (state and answers_itself(state, port) and asyncio.run(_answers(url))):
            _read(lines, tracker, _BEAT_S)
            told = _tell(tracker, told, began)
            state = runner.state(name)
            first_pid = first_pid or (state.main_pid if state else None)
            if _ended(state, first_pid):
                _read(lines, tracker, _LAST_LINES_S)
                raise OperatorError(_why(name, state, tracker, logs))
        print(f"{name} is ready at {url} after {time.monotonic() - began:.0f} s.")
        return 0
    finally:
        follower.stop()


def _ended(state: UnitState | None, first_pid: int | None) -> bool:
    if state is None or state.active in ("inactive", "failed"):
        return True
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


def _tell(tracker: PhaseTracker, told: Phase | None, began: float) -> Phase:
    phase = tracker.standing.phase
    if phase is not told:
        print(f"{time.monotonic() - began:5.0f} s  {phase.value}")
        sys.stdout.flush()
    return phase


def _why(name: str, state: UnitState | None, tracker: PhaseTracker, logs: str) -> str:
    line = tracker.standing.decisive_line
    if line:
        found = of_standing(tracker.standing, Around(spec=state.spec if state else None, next_port=_next_port(state)))
        known = f"\n{printable(found.meaning)} {printable(found.fix or '')}".rstrip() if found else ""
        return f"{name} failed to start: {printable(line)}{known}"
    status = f" with exit status {state.exit_status}" if state and state.exit_status is not None else ""
    return f"{name} ended{status} before it was ready: `{logs}` shows its log."


def _next_port(state: UnitState | None) -> Callable[[int], int]:
    host = state.spec.options.host if state and state.spec else "127.0.0.1"
    return lambda port: free_port(port, host)
