"""What an engine's directory and the process table say of it, in systemd's words."""

import os
import signal
from dataclasses import replace

from gpudeck.services.engine.enginedir import End, EngineDirectory
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.plan.types import EngineSpec


def unit_state(files: EngineDirectory, name: str, unit: str, spec: EngineSpec | None, boot: str) -> UnitState:
    """The engine's state now; `boot` is the present boot's id.

    An engine is a server: one that ended unasked has failed, whatever its exit status (vLLM exits with 0 when its core
    dies).  So has one that a stop had to kill, as with systemd's Result=timeout.
    """
    dead = UnitState(
        name, unit, Scope.EMBEDDED, managed=True, active="inactive", sub="dead", result="success", spec=spec
    )
    run = files.run()
    if run is None or run.boot != boot:
        return dead
    if end := files.end(run.run):
        return _ended(dead, end)
    supervised = run.supervisor.alive
    if supervised and files.stopping:
        return replace(dead, active="deactivating", sub="stop-sigterm", since=run.since)
    if supervised or run.main.alive:
        return replace(dead, active="active", sub="running", main_pid=run.main.pid, since=run.since)
    # The supervisor writes the end before it goes: between the two readings it may have done both.
    if end := files.end(run.run):
        return _ended(dead, end)
    return replace(dead, active="failed", sub="failed", result="signal", since=run.since)


def _ended(dead: UnitState, end: End) -> UnitState:
    status = end.status or 0
    killed = os.WIFSIGNALED(status)
    code = 128 + os.WTERMSIG(status) if killed else os.WEXITSTATUS(status)
    ended = replace(dead, since=end.at, exit_status=code)
    if end.asked and not (killed and os.WTERMSIG(status) == signal.SIGKILL):
        return ended
    result = "timeout" if end.asked else "signal" if killed else "exit-code"
    return replace(ended, active="failed", sub="failed", result=result)
