"""`gpudeck logs NAME`: the engine's log, and what comes with -f."""

import argparse
import queue
import sys

from gpudeck.app.commands.common import known_engine, runner_for, whole
from gpudeck.services.engine.types import LogLine, UnitState
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    parser.add_argument("-f", "--follow", action="store_true", help="stay and print what comes")
    parser.add_argument(
        "-n", "--lines", type=whole(0, 10**9, "number of lines"), metavar="N", help="only the last N lines"
    )


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
        lines = runner.history(state.name, args.lines)
        for line in lines:
            _show(line)
        if not lines and args.lines != 0:
            print(_silence(state), file=sys.stderr)
        if args.follow:
            sys.stdout.flush()
            # Printed here and not on the follower's thread, where nobody would hear that the reader went away.
            came: queue.SimpleQueue[list[LogLine]] = queue.SimpleQueue()
            follower = runner.follow(state.name, came.put, since=lines[-1] if lines else None)
            follower.start()
            try:
                while True:
                    _show_all(came.get())
            finally:
                follower.stop()
    finally:
        runner.close()
    return 0


def _silence(state: UnitState) -> str:
    name = printable(state.name)
    if state.runs:
        return f"{name} has said nothing yet."
    return f"{name} has no log here: it was never started, or what it said is no longer kept."


def _show_all(lines: list[LogLine]) -> None:
    for line in lines:
        _show(line)
    sys.stdout.flush()


def _show(line: LogLine) -> None:
    """A line as text: what it holds is data, also on a terminal.  Of a progress bar the last state is shown."""
    print(printable(line.text.rstrip("\r").rpartition("\r")[2]))
