"""`gpudeck logs NAME`: the engine's log, and what comes with -f."""

import argparse
import queue
import sys
from collections.abc import Sequence

from gpudeck.app.commands.common import known_engine, runner_for, whole
from gpudeck.services.engine.starts.outcome import start_words
from gpudeck.services.engine.types import LogLine, Runner, Start, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    parser.add_argument(
        "-n", "--lines", type=whole(0, 10**9, "number of lines"), metavar="N", help="only the last N lines"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-f", "--follow", action="store_true", help="stay and print what comes")
    which.add_argument("--starts", action="store_true", help="list the starts that the log still holds, newest first")
    which.add_argument(
        "--start", type=whole(1, 10**6, "number of a start"), metavar="N", help="only the Nth start of that list"
    )


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
        if args.starts:
            return _list_starts(state, runner.starts(state.name))
        if args.start:
            lines = _of_start(runner, state, args.start)
            _show_all(lines if args.lines is None else lines[len(lines) - min(args.lines, len(lines)) :])
            return 0
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


def _list_starts(state: UnitState, starts: Sequence[Start]) -> int:
    for number, start in enumerate(starts, 1):
        print(f"{number:>3}  {start_words(start, runs=state.runs and number == 1)}")
    if not starts:
        print(_silence(state), file=sys.stderr)
    return 0


def _of_start(runner: Runner, state: UnitState, number: int) -> list[LogLine]:
    """The log of the start of that number, the newest being 1.  Raises OperatorError where there is none."""
    starts = runner.starts(state.name)
    if number > len(starts):
        kept = f"{len(starts)} start{'' if len(starts) == 1 else 's'}"
        raise OperatorError(
            f"The log of {printable(state.name)} holds {kept}: gpudeck logs --starts lists what there is."
        )
    return runner.log_of(state.name, starts[number - 1])


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
