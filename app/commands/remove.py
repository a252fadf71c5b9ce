"""`gpudeck remove NAME`: stop an engine and delete its unit."""

import argparse

from gpudeck.app import places
from gpudeck.app.commands.common import known_engine, runner_for
from gpudeck.app.commands.confirm import confirmed
from gpudeck.app.commands.reloading import risk_of_reload
from gpudeck.services.engine.schedule import timer_of
from gpudeck.services.engine.starts.kept import StartBook
from gpudeck.services.errors import OperatorError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
        if not state.managed:
            raise OperatorError(f"{state.unit} was not written by gpudeck, so gpudeck does not delete it.")
        running = "stops the running engine and " if state.alive else ""
        beside = [timer_of(state.unit)] if runner.schedule(state.name) is not None else []
        deleted = " and ".join([state.unit, *beside])
        keys = " Keys that it holds go with it." if state.spec is not None and runner.api_key(state.name) else ""
        told = f"This {running}deletes {deleted}.{keys} {risk_of_reload(args, state.scope)}".rstrip()
        if not confirmed(told, yes=args.yes):
            return 1
        runner.remove(state.name)
        StartBook(places.starts_home()).forget(state)
        print(f"{state.unit} is removed.")
    finally:
        runner.close()
    return 0
