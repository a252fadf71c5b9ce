"""`gpudeck stop NAME`."""

import argparse

from gpudeck.app.commands.common import known_engine, runner_for, told_command
from gpudeck.app.commands.stopping import add_drain, on_interrupt, see_requests_off
from gpudeck.services.engine.types import Scope
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    add_drain(parser)


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
        if not state.alive:
            print(f"{state.name} is not running.")
            return 0
        see_requests_off(args, state)
        who = "It was told to stop" if state.scope is Scope.EMBEDDED else "systemd goes on stopping it"
        look = f"`{told_command(args, f'status {printable(state.name)}')}` shows whether it has ended."
        with on_interrupt(f"{who}: {look}"):
            runner.stop(state.name)
        print(f"{state.name} is stopped; none of its processes is left.")
    finally:
        runner.close()
    return 0
