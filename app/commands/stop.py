"""`gpudeck stop NAME`."""

import argparse

from gpudeck.app.commands.common import known_engine, runner_for


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
        if not state.alive:
            print(f"{state.name} is not running.")
            return 0
        runner.stop(state.name)
        print(f"{state.name} is stopped; none of its processes is left.")
    finally:
        runner.close()
    return 0
