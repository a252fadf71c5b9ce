"""The JSON document that `gpudeck adopt --json` prints."""

from typing import Any

from gpudeck.services.adoption.types import Review
from gpudeck.services.box.limits import MAX_INDEX
from gpudeck.services.box.shape import Field, Listing, OrNull, Record, Text, Whole
from gpudeck.services.engine.reportshape import FINDING_DOCUMENT
from gpudeck.services.plan.findings import Finding

_LONG = 1 << 22  # characters; a unit may have a megabyte
_MANY = 1 << 20

ADOPT_DOCUMENT = Record(
    {
        "unit": Field(Text(), "the unit as it is called", required=True),
        "name": Field(Text(), "the engine's name in gpudeck", required=True),
        "model": Field(
            Text(most=_LONG), "the model, as vLLM is told, by its path outside of a container", required=True
        ),
        "port": Field(Whole(0, 1 << 62), "the port that it serves on", required=True),
        "gpus": Field(Listing(Whole(0, MAX_INDEX), _MANY), "its cards in the order of their ranks", required=True),
        "tensor_parallel_size": Field(Whole(1, _MANY), "cards of each stage, as asked for", required=True),
        "pipeline_parallel_size": Field(Whole(1, _MANY), "stages of each copy, as asked for", required=True),
        "findings": Field(Listing(FINDING_DOCUMENT, _MANY), "what is wrong with it, worst first", required=True),
        "diff": Field(
            OrNull(Text(most=_LONG)),
            "from the unit to the one that gpudeck would write, keys left out; null for a container",
            required=True,
        ),
    }
)


def document(review: Review, changes: str | None) -> dict[str, Any]:
    adopted = review.adopted
    return {
        "unit": adopted.unit,
        "name": adopted.spec.name,
        "model": adopted.spec.model,
        "port": adopted.spec.options.port,
        "gpus": list(adopted.spec.placement.gpus),
        "tensor_parallel_size": adopted.tensor_parallel_size,
        "pipeline_parallel_size": adopted.pipeline_parallel_size,
        "findings": [finding_document(each) for each in review.findings],
        "diff": changes,
    }


def finding_document(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "message": finding.message,
        "fix": finding.fix,
    }
