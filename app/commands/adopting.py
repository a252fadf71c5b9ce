"""What commands need to judge hand-written units: the box, and the services that run vLLM."""

import argparse
from contextlib import suppress

from gpudeck.app.commands.common import read_box
from gpudeck.app.programs import engine_program
from gpudeck.services.adoption.on_runner import Reviewed, found_by, reviewed
from gpudeck.services.box.types import Box
from gpudeck.services.engine.types import Runner
from gpudeck.services.errors import OperatorError


def box_of(args: argparse.Namespace) -> Box | None:
    """The box; None where it can not be read, for then the rest is judged still."""
    with suppress(OperatorError):
        return read_box(args).box
    return None


def others(args: argparse.Namespace, runner: Runner) -> list[Reviewed]:
    """The box's other services that run vLLM; none where no systemd runs them, or among the demo's engines."""
    if args.demo or not (found := found_by(runner)):
        return []
    box = box_of(args)
    if box is not None:
        found = found_by(runner, box)
    version = engine_program(demo=args.demo).version
    return [reviewed(each, box, version) for each in found]
