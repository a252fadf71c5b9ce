"""`gpudeck unit …`: the unit that would be installed, and what would change."""

import argparse
import difflib
import sys
import textwrap

from gpudeck.app.commands.common import (
    add_spec_options,
    placement_from,
    read_box,
    runner_for,
    spec_from,
    surroundings,
    used_memory,
)
from gpudeck.app.commands.schedule import schedule_words
from gpudeck.services.engine.types import UnitPreview
from gpudeck.services.errors import OperatorError
from gpudeck.services.models.read import read_model
from gpudeck.services.plan.findings import Judgement, VerdictState
from gpudeck.services.plan.naming import checked_name, name_for
from gpudeck.services.plan.propose import propose
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.rules.judge import judge


def arguments(parser: argparse.ArgumentParser) -> None:
    add_spec_options(parser)
    parser.add_argument("--name", help="the engine's name (default: from the model's)")
    parser.add_argument("--explain", action="store_true", help="say what each line is for")


def run(args: argparse.Namespace) -> int:
    spec, judgement = judged_spec(args)
    preview, clock = _preview_and_clock(args, spec)
    if args.explain:
        print(explained(preview))
    else:
        print(difference(preview) if preview.existing and not preview.unchanged else preview.text)
    if clock:
        print(f"{spec.name} is {clock}.", file=sys.stderr)
    return 1 if judgement.state is VerdictState.BLOCKED else 0


def judged_spec(args: argparse.Namespace) -> tuple[EngineSpec, Judgement]:
    """The spec that the arguments name, on the best placement where they give none, and what is found about it."""
    model = read_model(args.model)
    snapshot = read_box(args)
    name = checked_name(args.name) if args.name is not None else name_for(model.name, ())
    used = used_memory(snapshot)
    asked = args.port
    around = surroundings(args, snapshot, name)
    owners = [each.name for each in around.neighbours if each.options.port == (asked or EngineOptions().port)]
    if owners and asked is None and args.port != EngineOptions().port:
        print(f"Port {EngineOptions().port} is {owners[0]}'s, so that {name} gets {args.port}.", file=sys.stderr)
    placement = placement_from(args)
    if placement is None:
        proposals = propose(
            snapshot.box, model, spec_from(args, model, Placement(), name), used, replicas=args.replicas, around=around,
            tensor_parallel=args.tensor_parallel_size, pipeline_parallel=args.pipeline_parallel_size,
        )  # fmt: skip
        if not proposals and owners:
            raise OperatorError(
                f"Port {asked} is {owners[0]}'s: leave --port out and the next free one is taken, or give another."
            )
        if not proposals:
            raise OperatorError(
                f"No placement of {model.name} on this box would start: gpudeck plan {args.model} --stage 0 says why."
            )
        spec, judgement, _why = proposals[0]
        return spec, judgement
    spec = spec_from(args, model, placement, name)
    return spec, judge(snapshot.box, model, spec, used=used, around=around)


def _preview_and_clock(args: argparse.Namespace, spec: EngineSpec) -> tuple[UnitPreview, str]:
    """The unit, and when the engine is restarted by the clock where it is installed already."""
    runner = runner_for(args)
    try:
        there = runner.state(spec.name)
        schedule = runner.schedule(spec.name) if there is not None else None
        return runner.preview(spec), schedule_words(schedule) if schedule is not None else ""
    finally:
        runner.close()


def explained(preview: UnitPreview) -> str:
    """The unit with what each line is for above it, as comments."""
    told, lines = [], preview.text.splitlines()
    for line, why in zip(lines, preview.reasons or ("",) * len(lines), strict=True):
        told += [*textwrap.wrap(why, 100, initial_indent="# ", subsequent_indent="# "), line]
    return "\n".join(told)


def difference(preview: UnitPreview) -> str:
    """What would change in the unit that stands there, as a unified diff."""
    return "".join(
        difflib.unified_diff(
            (preview.existing or "").splitlines(keepends=True),
            preview.text.splitlines(keepends=True),
            f"{preview.path} (installed)",
            f"{preview.path} (would be)",
        )
    )
