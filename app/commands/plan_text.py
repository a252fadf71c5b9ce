"""What `gpudeck plan` prints: the best placement in full, the others and the combinations in two lines each."""

import shlex
from collections.abc import Sequence

from gpudeck.services.box.types import GIB, Box
from gpudeck.services.memory.settings import settings_for
from gpudeck.services.memory.token import token_arithmetic
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.command import argv, environment
from gpudeck.services.plan.estimate import decode_estimate
from gpudeck.services.plan.findings import Finding, Judgement, MemoryPlan, Severity
from gpudeck.services.plan.proposals.combinations import Combination
from gpudeck.services.plan.propose import Proposal
from gpudeck.services.plan.types import EngineSpec, Placement
from gpudeck.services.text import printable

_MARKS = {Severity.ERROR: "error  ", Severity.WARNING: "warning", Severity.INFO: "info   "}


def plan_text(
    box: Box,
    model: ModelFacts,
    proposals: Sequence[Proposal],
    findings: Sequence[Finding],
    combinations: Sequence[Combination],
    *,
    whole: bool,
) -> str:
    """The plan for a terminal; `whole` shows every proposal in full."""
    lines = [_heading(model), ""]
    for finding in findings:
        lines += _finding_lines(finding)
    full = len(proposals) if whole else 1
    for number, (spec, judgement, why) in enumerate(proposals[:full]):
        if number:
            lines.append("")
        lines += _placement_lines(box, model, spec, judgement, why)
    rest = proposals[full:]
    if rest:
        lines += ["", "Others, best first (--all shows them in full):", *_short_lines(box, model, rest)]
    for combination in combinations:
        lines += ["", f"Side by side: {combination.why}"]
        if whole:
            for spec, judgement, why in combination.proposals:
                lines += _placement_lines(box, model, spec, judgement, why)
        else:
            lines += _short_lines(box, model, combination.proposals, why=False)
    return "\n".join(printable(line) for line in lines)


def _short_lines(box: Box, model: ModelFacts, proposals: Sequence[Proposal], *, why: bool = True) -> list[str]:
    """Two lines each: the figures in columns, and why with the first thing that is wrong."""
    rows = [_figures(box, model, spec, judgement) for spec, judgement, _ in proposals]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row, (_, judgement, reason) in zip(rows, proposals, strict=True):
        left, right = row[:3], row[3:]
        cells = [cell.ljust(width) for cell, width in zip(left, widths[:3], strict=True)]
        cells += [cell.rjust(width) for cell, width in zip(right, widths[3:], strict=True)]
        lines.append(f"  {'  '.join(cells)}".rstrip())
        wrong = [finding.rule for finding in judgement.findings if finding.severity is Severity.WARNING]
        told = ([reason] if why else []) + ([f"({', '.join(dict.fromkeys(wrong))})"] if wrong else [])
        if told:
            lines.append(f"      {' '.join(told)}")
    return lines


def _figures(box: Box, model: ModelFacts, spec: EngineSpec, judgement: Judgement) -> tuple[str, ...]:
    memory = judgement.memory
    estimate = None if memory is None else decode_estimate(box, model, spec, memory)
    requests = memory.total_concurrency if memory is not None else 0.0
    return (
        judgement.state.value,
        _shape(spec.placement),
        f"GPUs {_cards(spec.placement)}",
        f"{requests:.1f} × {memory.max_model_len:,} tokens" if memory is not None else "",
        f"~{estimate.decode_tokens_per_s:.0f} tok/s" if estimate is not None else "",
    )


def _shape(placement: Placement) -> str:
    shape = f"TP {placement.tensor_parallel_size} × PP {placement.pipeline_parallel_size}"
    return f"{shape} × {placement.replicas} copies" if placement.replicas > 1 else shape


def _cards(placement: Placement) -> str:
    return " | ".join(",".join(str(gpu) for gpu in stage) for stage in placement.stages)


def _heading(model: ModelFacts) -> str:
    parts = [model.name, model.architecture or "no architecture named"]
    if model.parameters is not None:
        parts.append(f"{model.parameters / 1e9:.2f} billion parameters")
    parts.append(model.quantization or model.dtype)
    return ", ".join(parts)


def _placement_lines(box: Box, model: ModelFacts, spec: EngineSpec, judgement: Judgement, why: str) -> list[str]:
    placement = spec.placement
    lines = [f"{judgement.state.value.upper()}  {_shape(placement)}  GPUs {_cards(placement)}  ({why})"]
    for finding in judgement.findings:
        lines += _finding_lines(finding)
    memory = judgement.memory
    if memory is not None:
        lines += _memory_lines(box, memory)
        lines.append(
            f"  KV cache for {memory.kv_cache_tokens:,} tokens: {memory.max_concurrency:.1f} requests of "
            f"{memory.max_model_len:,} tokens at once{', in each copy' if memory.copies else ''}"
        )
        if memory.copies:
            each = "" if len(set(memory.copies)) == 1 else f" ({' + '.join(f'{copy:,}' for copy in memory.copies)})"
            lines.append(
                f"    in all {len(memory.copies)} copies {memory.total_tokens:,} tokens{each}, "
                f"{memory.total_concurrency:.1f} requests"
            )
        estimate = decode_estimate(box, model, spec, memory)
        if estimate is not None:
            lines.append(
                f"  About {estimate.decode_tokens_per_s:.0f} tokens a second for one request, "
                f"{estimate.throughput_tokens_per_s:,.0f} for all that fit at their full length"
            )
            lines.append(f"    ({estimate.basis})")
        arithmetic = token_arithmetic(model, settings_for(model, spec, box.gpu(placement.gpus[0])))
        if arithmetic:
            lines.append(f"  {arithmetic}")
    variables = [f"{name}={shlex.quote(value)}" for name, value in environment(spec).items()]
    lines.append(f"  {' '.join(variables)} {shlex.join(argv(spec))}")
    return lines


def _memory_lines(box: Box, memory: MemoryPlan) -> list[str]:
    """Where each card's memory goes, in columns."""
    rows = []
    for part in memory.per_gpu:
        gpu = box.gpu(part.gpu)
        rows.append(
            (
                f"GPU {part.gpu} {gpu.name if gpu is not None else ''}:",
                f"weights {_gib(part.weights)},",
                f"KV cache {_gib(part.kv_cache)},",
                f"overhead {_gib(part.overhead)},",
                f"others {_gib(part.other)},",
                _free(part.free),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(6)] if rows else []
    return [
        f"  {' '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))}".rstrip() for row in rows
    ]


def _finding_lines(finding: Finding) -> list[str]:
    lines = [f"  {_MARKS[finding.severity]} {finding.rule}: {finding.message}"]
    if finding.fix is not None:
        lines.append(f"          → {finding.fix}")
    return lines


def _free(size: int) -> str:
    return f"free {_gib(size)}" if size >= 0 else f"{_gib(-size)} over"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
