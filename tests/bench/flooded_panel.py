"""flooded_panel.py journal|FILE: the panel with one engine, whose log is followed from the journal or from a file."""

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gpudeck.app.collector import settle_soon
from gpudeck.app.panel import Panel, setup_from
from gpudeck.app.terminal import guard_screen
from gpudeck.services.engine.journal import JournalQuery
from gpudeck.services.engine.journal_follower import JournalFollower
from gpudeck.services.engine.logfile import FileFollower
from gpudeck.services.engine.types import LogFollower, LogLine, Runner, Scope, UnitState


class OneEngine:
    """As much of a Runner as following a log takes."""

    scope = Scope.SYSTEM
    description = "one engine"

    def __init__(self, log: str) -> None:
        self._log = log

    def engines(self) -> tuple[UnitState, ...]:
        unit = UnitState("flood", "vllm-flood.service", Scope.SYSTEM, managed=True, active="active", sub="running")
        return (replace(unit, main_pid=os.getpid()),)

    def watch(self, _listener: object) -> Callable[[], None]:
        return lambda: None

    def follow(self, _name: str, deliver: Callable[[list[LogLine]], None], **_since: object) -> LogFollower:
        if self._log == "journal":
            return JournalFollower(JournalQuery("vllm-flood.service", Scope.SYSTEM), deliver, since=0.0)
        return FileFollower(Path(self._log), deliver)

    def close(self) -> None:
        pass


def main(log: str) -> None:
    def open_runner() -> Runner:
        return OneEngine(log)  # type: ignore[return-value]

    setup = setup_from(argparse.Namespace(demo="mixed", box_file=None, plain=False, scope=None), ascii_only=False)
    guard_screen()
    settle_soon()
    Panel(replace(setup, open_runner=open_runner)).run()


if __name__ == "__main__":
    main(sys.argv[1])
