"""`gpudeck restart NAME`."""

import argparse
import sys

from gpudeck.app.commands.colliding import refuse_collision
from gpudeck.app.commands.common import known_engine, runner_for, told_command
from gpudeck.app.commands.stopping import add_drain, on_interrupt, see_requests_off
from gpudeck.app.commands.waiting import wait_ready
from gpudeck.services.engine.drift import DriftKind
from gpudeck.services.engine.listening import port_trouble
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    parser.add_argument("--no-wait", action="store_true", help="return once the process runs")
    parser.add_argument("--force", action="store_true", help="also where it collides with engines that run")
    add_drain(parser)


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
        if taken := port_trouble(state.spec, state):
            raise OperatorError(taken)  # while it still runs, if it does
        refuse_collision(args, runner, state)
        if any(drift.kind is DriftKind.ON_DISK for drift in runner.drift(state.name)):
            reload = told_command(args, f"reload {printable(state.name)}")
            print(
                f"{state.unit} was changed on disk, which systemd has not read: what it read before runs again; "
                f"`{reload}` has it read the file, and a restart after that runs it.",
                file=sys.stderr,
            )
        see_requests_off(args, state)
        with on_interrupt(_left(args, state)):
            runner.restart(state.name)
        return 0 if args.no_wait else wait_ready(args, runner, state.name)
    finally:
        runner.close()


def _left(args: argparse.Namespace, state: UnitState) -> str:
    """What Ctrl-C leaves: systemd has the whole order, the embedded runner only its first half."""
    name = printable(state.name)
    if state.scope is Scope.EMBEDDED:
        start = told_command(args, f"start {name}")
        return f"{name} was told to stop, and is not started again: `{start}` does that."
    return f"systemd goes on restarting {name}: `{told_command(args, f'status {name}')}` shows how far it is."
