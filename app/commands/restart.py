"""`gpudeck restart NAME`."""

import argparse

from gpudeck.app.commands.common import known_engine, runner_for
from gpudeck.app.commands.waiting import wait_ready
from gpudeck.services.engine.listening import port_trouble
from gpudeck.services.errors import OperatorError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    parser.add_argument("--no-wait", action="store_true", help="return once the process runs")


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
        if taken := port_trouble(state.spec, state):
            raise OperatorError(taken)  # while it still runs, if it does
        runner.restart(state.name)
        return 0 if args.no_wait else wait_ready(args, runner, state.name)
    finally:
        runner.close()
