"""`gpudeck start NAME`: start an engine and wait until it answers, or say why it failed."""

import argparse
import time
from functools import partial

from gpudeck.app.commands.colliding import refuse_collision
from gpudeck.app.commands.common import known_engine, runner_for, told_command
from gpudeck.app.commands.keys import add_key_options, secrets_from
from gpudeck.app.commands.waiting import wait_ready
from gpudeck.services.engine.ending import how_it_ended
from gpudeck.services.engine.listening import port_trouble
from gpudeck.services.engine.types import Runner
from gpudeck.services.errors import OperatorError

_MOMENT_S = 2.0
_LOOK_S = 0.1


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine")
    parser.add_argument("--no-wait", action="store_true", help="return once the process runs")
    parser.add_argument("--force", action="store_true", help="also where it collides with engines that run")
    add_key_options(parser)


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    told = partial(told_command, args)
    try:
        state = known_engine(runner, args.name)
        if secrets := secrets_from(args):
            runner.keep_secrets(state.name, secrets)
        if state.runs:
            anew = f" {told(f'restart {state.name}')} lets it read its keys." if secrets else ""
            print(f"{state.name} is {state.active} already.{anew}")
        else:
            if taken := port_trouble(state.spec, state):
                raise OperatorError(taken)
            refuse_collision(args, runner, state)
            runner.start(state.name)
        if args.no_wait:
            return 0
        if state.spec is None:
            _watch_for_a_moment(runner, state.name)
            follow = told(f"logs -f {state.name}")
            print(f"{state.name} is started; gpudeck did not write its unit and does not know its port: {follow}")
            return 0
        return wait_ready(args, runner, state.name)
    finally:
        runner.close()


def _watch_for_a_moment(runner: Runner, name: str) -> None:
    """Raise OperatorError where the engine ends at once: nothing else can be said of one whose port is not known."""
    end = time.monotonic() + _MOMENT_S
    while time.monotonic() < end:
        state = runner.state(name)
        if state is None or not state.runs:
            why = how_it_ended(state) if state is not None else ""
            raise OperatorError(f"{name} ended at once. {why}".rstrip())
        time.sleep(_LOOK_S)
