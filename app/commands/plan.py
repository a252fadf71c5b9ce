"""`gpudeck plan MODEL …`: what a placement would take and whether it would start, or the best placements."""

import argparse
import shlex
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
from gpudeck.services.box.types import GIB, Box, Snapshot
from gpudeck.services.errors import OperatorError
from gpudeck.services.memory.settings import settings_for
from gpudeck.services.memory.token import token_arithmetic
from gpudeck.services.models.read import read_model
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.command import argv, environment
from gpudeck.services.plan.document import plan_document
from gpudeck.services.plan.findings import Finding, Judgement, Severity, VerdictState
from gpudeck.services.plan.naming import name_for
from gpudeck.services.plan.propose import Objective, Proposal, nearest, propose
from gpudeck.services.plan.types import EngineSpec, Placement
from gpudeck.services.rules.judge import judge
from gpudeck.services.text import printable

_MARKS = {Severity.ERROR: "error  ", Severity.WARNING: "warning", Severity.INFO: "info   "}


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
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print the plan; 1 where it is blocked, or where no placement would start."""
    model = read_model(args.model)
    snapshot = read_box(args)
    objective = Objective(args.objective)
    proposals, findings = _answer(args, model, snapshot, objective)
    if args.ask:
        proposals = _asked(args, proposals)
    if args.json:
        print_json(plan_document(snapshot.box, model, proposals, objective, findings))
    else:
        print(_text(snapshot.box, model, proposals, findings))
    return 0 if proposals and proposals[0][1].state is not VerdictState.BLOCKED else 1


def _answer(
    args: argparse.Namespace, model: ModelFacts, snapshot: Snapshot, objective: Objective
) -> tuple[Sequence[Proposal], Sequence[Finding]]:
    box, used = snapshot.box, used_memory(snapshot)
    placement = placement_from(args)
    name = name_for(model.name)
    if placement is not None:
        _same_shape(args, placement)
        spec = spec_from(args, model, placement, name)
        around = surroundings(args, snapshot, name)
        return [(spec, judge(box, model, spec, used=used, around=around), "as given")], ()
    spec = spec_from(args, model, Placement((), args.replicas), name)
    tensor, pipeline = args.tensor_parallel_size, args.pipeline_parallel_size
    proposals = propose(box, model, spec, used, tensor_parallel=tensor, pipeline_parallel=pipeline, objective=objective)
    if proposals:
        return proposals, ()
    return (), [nearest(box, model, spec, used, tensor_parallel=tensor, pipeline_parallel=pipeline)]


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


def _text(box: Box, model: ModelFacts, proposals: Sequence[Proposal], findings: Sequence[Finding]) -> str:
    lines = [_heading(model), ""]
    for finding in findings:
        lines += _finding_lines(finding)
    for number, (spec, judgement, why) in enumerate(proposals):
        if number:
            lines.append("")
        lines += _placement_lines(box, model, spec, judgement, why)
    return "\n".join(printable(line) for line in lines)


def _heading(model: ModelFacts) -> str:
    parts = [model.name, model.architecture or "no architecture named"]
    if model.parameters is not None:
        parts.append(f"{model.parameters / 1e9:.2f} billion parameters")
    parts.append(model.quantization or model.dtype)
    return ", ".join(parts)


def _placement_lines(box: Box, model: ModelFacts, spec: EngineSpec, judgement: Judgement, why: str) -> list[str]:
    placement = spec.placement
    stages = " | ".join(",".join(str(gpu) for gpu in stage) for stage in placement.stages)
    shape = f"TP {placement.tensor_parallel_size} × PP {placement.pipeline_parallel_size}"
    if placement.replicas > 1:
        shape += f" × {placement.replicas} copies"
    lines = [f"{judgement.state.value.upper()}  {shape}  GPUs {stages}  ({why})"]
    for finding in judgement.findings:
        lines += _finding_lines(finding)
    memory = judgement.memory
    if memory is not None:
        for part in memory.per_gpu:
            gpu = box.gpu(part.gpu)
            lines.append(
                f"  GPU {part.gpu} {gpu.name if gpu is not None else ''}: weights {_gib(part.weights)}, KV cache "
                f"{_gib(part.kv_cache)}, overhead {_gib(part.overhead)}, others {_gib(part.other)}, "
                f"{_free(part.free)}"
            )
        lines.append(
            f"  KV cache for {memory.kv_cache_tokens:,} tokens: {memory.max_concurrency:.1f} requests of "
            f"{memory.max_model_len:,} tokens at once"
        )
        arithmetic = token_arithmetic(model, settings_for(model, spec, box.gpu(placement.gpus[0])))
        if arithmetic:
            lines.append(f"  {arithmetic}")
    variables = [f"{name}={shlex.quote(value)}" for name, value in environment(spec).items()]
    lines.append(f"  {' '.join(variables)} {shlex.join(argv(spec))}")
    return lines


def _finding_lines(finding: Finding) -> list[str]:
    lines = [f"  {_MARKS[finding.severity]} {finding.rule}: {finding.message}"]
    if finding.fix is not None:
        lines.append(f"          → {finding.fix}")
    return lines


def _free(size: int) -> str:
    return f"free {_gib(size)}" if size >= 0 else f"{_gib(-size)} over"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
