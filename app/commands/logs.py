"""`gpudeck logs NAME`: the engine's log, and what comes with -f."""

import argparse
import sys
import threading

from gpudeck.app.commands.common import known_engine, runner_for
from gpudeck.services.engine.types import LogLine
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    parser.add_argument("-f", "--follow", action="store_true", help="stay and print what comes")
    parser.add_argument("-n", "--lines", type=int, default=None, metavar="N", help="only the last N lines")


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
        lines = runner.history(state.name, args.lines)
        for line in lines:
            _show(line)
        if args.follow:
            follower = runner.follow(state.name, _show_all, since=lines[-1].at if lines else None)
            follower.start()
            try:
                threading.Event().wait()
            finally:
                follower.stop()
    finally:
        runner.close()
    return 0


def _show_all(lines: list[LogLine]) -> None:
    for line in lines:
        _show(line)
    sys.stdout.flush()


def _show(line: LogLine) -> None:
    """A line as text: what it holds is data, also on a terminal.  Of a progress bar the last state is shown."""
    print(printable(line.text.rstrip("\r").rpartition("\r")[2]))
