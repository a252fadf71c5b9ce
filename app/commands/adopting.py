"""What commands need to judge hand-written units: the box, the model, and the services that run vLLM."""

import argparse
from contextlib import suppress
from dataclasses import dataclass

from gpudeck.app.commands.common import read_box
from gpudeck.app.programs import engine_program, told_program
from gpudeck.services.adoption.on_box import Found, find_others
from gpudeck.services.adoption.review import Ground, review
from gpudeck.services.adoption.types import Adopted, Review
from gpudeck.services.box.types import Box
from gpudeck.services.engine.types import Runner, Scope
from gpudeck.services.errors import OperatorError
from gpudeck.services.models.read import read_model
from gpudeck.services.rules.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Reviewed:
    found: Found
    review: Review


def box_of(args: argparse.Namespace) -> Box | None:
    """The box; None where it can not be read, for then the rest is judged still."""
    with suppress(OperatorError):
        return read_box(args).box
    return None


def judged(args: argparse.Namespace, adopted: Adopted, box: Box | None) -> Review:
    model = None
    with suppress(OperatorError):
        model = read_model(adopted.spec.model, dict(adopted.spec.environment))
    if adopted.container is not None:
        # Its image holds a vLLM of its own, of which no more than a tag is known.
        return review(adopted, Ground(box, model, Surroundings(vllm_version=engine_program(demo=args.demo).version)))
    program = told_program(adopted.spec.program)
    return review(adopted, Ground(box, model, Surroundings(vllm_version=program.version, engine_cuda=program.cuda)))


def others(args: argparse.Namespace, runner: Runner) -> list[Reviewed]:
    """The box's other services that run vLLM; none where no systemd runs them, or among the demo's engines."""
    if args.demo or runner.scope is Scope.EMBEDDED:
        return []
    from gpudeck.services.engine.systemd.beside import Beside
    from gpudeck.services.engine.systemd.manager import SystemdRunner

    systemds = [runner.own, runner.system] if isinstance(runner, Beside) else [runner]
    asked = [each for each in systemds if isinstance(each, SystemdRunner) and not each.lost]
    if not (found := [each for systemd in asked for each in find_others(systemd)]):
        return []
    box = box_of(args)
    if box is not None:
        found = [each for systemd in asked for each in find_others(systemd, box)]
    return [Reviewed(each, judged(args, each.adopted, box)) for each in found]
