"""The JSON document of `gpudeck plan`; docs/plan-command.schema.json describes it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gpudeck.services.box.types import Box
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.command import argv, environment
from gpudeck.services.plan.estimate import decode_estimate
from gpudeck.services.plan.findings import Finding, Judgement, VerdictState
from gpudeck.services.plan.proposals.combinations import Combination
from gpudeck.services.plan.propose import Objective, Proposal
from gpudeck.services.plan.types import EngineSpec


def plan_document(
    box: Box,
    model: ModelFacts,
    proposals: Sequence[Proposal],
    objective: Objective,
    findings: Sequence[Finding] = (),
    combinations: Sequence[Combination] = (),
) -> dict[str, Any]:
    """The document for these placements, best first; `findings` are those of the request as a whole."""
    return {
        "verdict": proposals[0][1].state.value if proposals else VerdictState.BLOCKED.value,
        "objective": objective.value,
        "findings": [_finding(finding) for finding in findings],
        "placements": [_placement(box, model, spec, judgement, why) for spec, judgement, why in proposals],
        "combinations": [
            {
                "why": combination.why,
                "placements": [
                    _placement(box, model, spec, judgement, why) for spec, judgement, why in combination.proposals
                ],
            }
            for combination in combinations
        ],
    }


def _placement(box: Box, model: ModelFacts, spec: EngineSpec, judgement: Judgement, why: str) -> dict[str, Any]:
    placement, memory = spec.placement, judgement.memory
    estimate = None if memory is None else decode_estimate(box, model, spec, memory)
    return {
        "why": why,
        "stages": [list(stage) for stage in placement.stages],
        "replicas": placement.replicas,
        "tensor_parallel_size": placement.tensor_parallel_size,
        "pipeline_parallel_size": placement.pipeline_parallel_size,
        "layer_partition": None if spec.layer_partition is None else list(spec.layer_partition),
        "env": environment(spec),
        "argv": list(argv(spec)),
        "verdict": judgement.state.value,
        "findings": [_finding(finding) for finding in judgement.findings],
        "memory": None
        if memory is None
        else {
            "per_gpu": [asdict(part) for part in memory.per_gpu],
            "kv_cache_tokens": memory.kv_cache_tokens,
            "kv_cache_tokens_total": memory.total_tokens,
            "max_concurrency": round(memory.max_concurrency, 2),
            "max_model_len": memory.max_model_len,
        },
        "estimate": None if estimate is None else asdict(estimate),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "message": finding.message,
        "fix": finding.fix,
    }
