"""`gpudeck rollback NAME`: back to the last plan of an engine that reached ready."""

import argparse
from dataclasses import replace

from gpudeck.app import places
from gpudeck.app.commands import unit
from gpudeck.app.commands.colliding import refuse_collision
from gpudeck.app.commands.common import known_engine, runner_for
from gpudeck.app.commands.confirm import confirmed
from gpudeck.app.commands.reloading import risk_of_reload
from gpudeck.app.commands.stopping import add_drain, see_requests_off
from gpudeck.app.commands.waiting import wait_ready
from gpudeck.services.engine.listening import port_trouble
from gpudeck.services.engine.starts.kept import StartBook
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--no-wait", action="store_true", help="return once the process runs")
    parser.add_argument("--force", action="store_true", help="also where it collides with engines that run")
    add_drain(parser)


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
        name = printable(state.name)
        spec = StartBook(places.starts_home()).of(state).other_than(state.spec)
        if spec is None or not state.managed:
            raise OperatorError(f"No other plan of {name} has reached ready yet, so there is none to go back to.")
        preview = runner.preview(spec)
        print(unit.difference(preview) if preview.existing else preview.text)
        act = "restarts" if state.runs else "starts"
        risk = risk_of_reload(args, state.scope)
        if not confirmed(f"This writes {preview.path} as it last ran, and {act} {name}. {risk}".rstrip(), yes=args.yes):
            return 1
        if taken := port_trouble(spec, state):
            raise OperatorError(taken)
        refuse_collision(args, runner, replace(state, spec=spec))
        see_requests_off(args, state)
        runner.install(spec, shown=preview)
        (runner.restart if state.runs else runner.start)(state.name)
        return 0 if args.no_wait else wait_ready(args, runner, state.name)
    finally:
        runner.close()
