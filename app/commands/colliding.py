"""Refusing a start beside engines that it would collide with, before the runner is asked."""

import argparse
from contextlib import suppress

from gpudeck.app.commands.common import read_box
from gpudeck.app.programs import engine_program
from gpudeck.services.box.types import Snapshot
from gpudeck.services.engine.types import Runner, UnitState
from gpudeck.services.errors import OperatorError


def refuse_collision(args: argparse.Namespace, runner: Runner, state: UnitState) -> None:
    """Raise OperatorError where cards, port or memory are another's, but for --force."""
    if args.force or state.spec is None:
        return
    from gpudeck.services.engine.starts.collisions import collision

    seen: Snapshot | None = None
    with suppress(OperatorError):  # without a driver cards and ports are known still
        seen = read_box(args)
    if told := collision(state.spec, runner.engines(), seen, engine_program(demo=args.demo).version):
        raise OperatorError(f"{told} --force starts it all the same.")
