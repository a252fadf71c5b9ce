"""`gpudeck plan MODEL …`: what a placement would take and whether it would start, or the best placements."""

import argparse
from collections.abc import Sequence

from gpudeck.app.commands.common import (
    add_spec_options,
    placement_from,
    print_json,
    read_box,
    spec_from,
    surroundings,
    used_memory,
)
from gpudeck.app.commands.plan_text import plan_text
from gpudeck.services.box.types import Snapshot
from gpudeck.services.errors import OperatorError
from gpudeck.services.models.read import read_model
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.document import plan_document
from gpudeck.services.plan.findings import Finding, VerdictState
from gpudeck.services.plan.naming import name_for
from gpudeck.services.plan.proposals.combinations import Combination, combinations
from gpudeck.services.plan.propose import Objective, Proposal, nearest, propose
from gpudeck.services.plan.types import Placement
from gpudeck.services.rules.judge import judge


def arguments(parser: argparse.ArgumentParser) -> None:
    add_spec_options(parser)
    parser.add_argument(
        "--for",
        dest="objective",
        choices=[objective.value for objective in Objective],
        default=Objective.CONTEXT.value,
        help="what placements are chosen for (default: context)",
    )
    parser.add_argument(
        "--ask", action="store_true", help="ask the installed vLLM too whether it accepts the command (ten seconds)"
    )
    parser.add_argument("--all", action="store_true", help="every proposal in full, not only the best")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print the plan; 1 where it is blocked, or where no placement would start."""
    model = read_model(args.model)
    snapshot = read_box(args)
    objective = Objective(args.objective)
    proposals, findings, beside = _answer(args, model, snapshot, objective)
    if args.ask:
        proposals = _asked(args, proposals)
    if args.json:
        print_json(plan_document(snapshot.box, model, proposals, objective, findings, beside))
    else:
        print(plan_text(snapshot.box, model, proposals, findings, beside, whole=args.all))
    return 0 if proposals and proposals[0][1].state is not VerdictState.BLOCKED else 1


def _answer(
    args: argparse.Namespace, model: ModelFacts, snapshot: Snapshot, objective: Objective
) -> tuple[Sequence[Proposal], Sequence[Finding], Sequence[Combination]]:
    box, used = snapshot.box, used_memory(snapshot)
    placement = placement_from(args)
    name = name_for(model.name)
    around = surroundings(args, snapshot, name)
    if placement is not None:
        _same_shape(args, placement)
        spec = spec_from(args, model, placement, name)
        return [(spec, judge(box, model, spec, used=used, around=around), "as given")], (), ()
    spec = spec_from(args, model, Placement(), name)
    tensor, pipeline, copies = args.tensor_parallel_size, args.pipeline_parallel_size, args.replicas
    proposals = propose(
        box, model, spec, used, tensor_parallel=tensor, pipeline_parallel=pipeline, replicas=copies,
        objective=objective, around=around,
    )  # fmt: skip
    if not proposals:
        asked = {"tensor_parallel": tensor, "pipeline_parallel": pipeline, "replicas": copies}
        return (), [nearest(box, model, spec, used, around=around, **asked)], ()
    if tensor or pipeline or copies:
        return proposals, (), ()
    return proposals, (), combinations(box, model, spec, used, objective=objective, around=around)


def _asked(args: argparse.Namespace, proposals: Sequence[Proposal]) -> Sequence[Proposal]:
    """The proposals with the installed vLLM's own word on the first."""
    if args.demo or args.box_file:
        raise OperatorError("--ask asks the vLLM of this machine about its own cards: leave --demo and --box out.")
    if not proposals:
        return proposals
    from gpudeck.services.rules.asked import with_answer
    from gpudeck.services.vllm.asking import Asking

    (spec, judgement, why), *others = proposals
    return [(spec, with_answer(judgement, Asking().ask(spec)), why), *others]


def _same_shape(args: argparse.Namespace, placement: Placement) -> None:
    for option, asked, placed in (
        ("--tensor-parallel-size", args.tensor_parallel_size, placement.tensor_parallel_size),
        ("--pipeline-parallel-size", args.pipeline_parallel_size, placement.pipeline_parallel_size),
    ):
        if asked is not None and asked != placed:
            raise OperatorError(f"{option} {asked} contradicts --stage, which gives {placed}: leave one of them out.")
