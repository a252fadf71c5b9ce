"""A result as JSON: how it is kept, and what `gpudeck bench --json` prints."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from gpudeck.services.bench.types import (
    CardFacts,
    CardUse,
    Generator,
    Level,
    Limits,
    QueueTime,
    Result,
    Spread,
    Target,
    Workload,
)
from gpudeck.services.box.limits import MAX_BYTES, MAX_INDEX
from gpudeck.services.box.shape import (
    Field,
    Flag,
    Listing,
    Number,
    OneOf,
    OrNull,
    Record,
    Shape,
    ShapeError,
    Text,
    Whole,
    shown,
)
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan import spec_json

_MANY = 1 << 16
_LONG = 1 << 16
_COUNT = Whole(0, 1 << 53)
_SECONDS = Number(0, 1e9)
_AMOUNT = Number(0, 1e15)


@dataclass(frozen=True, slots=True)
class SpecShape:
    """An engine's spec, as its unit carries it."""

    def check(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise ShapeError(f"{where} must be an object, not {shown(value)}")
        try:
            spec_json.loads(json.dumps(value))
        except OperatorError as error:
            raise ShapeError(f"{where}: {error}") from None

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}


def _all(about: dict[str, tuple[Shape, str]]) -> Record:
    return Record({name: Field(shape, words, required=True) for name, (shape, words) in about.items()})


_SPREAD = OrNull(
    _all({name: (_SECONDS, f"seconds, {name}") for name in ("mean", "p50", "p90", "p95", "p99")}),
)
_CARD_USE = _all(
    {
        "gpu": (Whole(0, MAX_INDEX), "the card"),
        "utilization": (OrNull(Number(0, 100)), "mean percent, waiting for other cards too"),
        "memory_busy": (OrNull(Number(0, 100)), "mean percent of the time in which its memory was read or written"),
        "memory_bytes": (OrNull(Whole(0, MAX_BYTES)), "the most in use"),
        "power_w": (OrNull(Number(0, 1e5)), "mean watts"),
    }
)
_LEVEL = _all(
    {
        "level": (Number(0, 1e9), "requests at once, or requests a second in an open loop"),
        "wanted": (_COUNT, "requests of the level"),
        "completed": (_COUNT, "requests that were answered whole"),
        "errors": (
            Listing(_all({"why": (Text(most=_LONG), "in a sentence"), "requests": (_COUNT, "how many")}), _MANY),
            "requests that failed",
        ),
        "seconds": (_SECONDS, "from the first request to the last end"),
        "input_tokens": (_COUNT, "of the requests that were answered"),
        "output_tokens": (_COUNT, "of the requests that were answered"),
        "first_token": (_SPREAD, "time to the first token"),
        "between_tokens": (_SPREAD, "inter-token latency, piece by piece of the stream"),
        "each_token": (_SPREAD, "time for each token after the first, request by request"),
        "end_to_end": (_SPREAD, "time to the end of the answer"),
        "queue": (
            OrNull(
                _all(
                    {
                        "mean": (_SECONDS, "seconds"),
                        "p99": (_SECONDS, "seconds"),
                        "finest": (_SECONDS, "below this many seconds p99 tells no more"),
                    }
                )
            ),
            "time in the engine's queue, by its own metrics",
        ),
        "cards": (Listing(_CARD_USE, _MANY), "what the cards did meanwhile"),
        "estimated": (OrNull(_AMOUNT), "tokens a second of one request after its first, as the plan estimates"),
        "partial": (Flag(), "whether it was cancelled"),
        "tokens_per_s": (OrNull(_AMOUNT), "output tokens a second over all requests"),
        "decode_tokens_per_s": (OrNull(_AMOUNT), "tokens a second of one request after its first, measured"),
        "tokens_per_joule": (OrNull(_AMOUNT), "output tokens for each joule that the cards took"),
        "estimate_error": (OrNull(Number(-1, 1e9)), "how far the estimate is off: 0.25 is a quarter too high"),
        "within_limits": (OrNull(Flag()), "whether the limits were kept and nothing failed"),
    }
)
_DERIVED = ("tokens_per_s", "decode_tokens_per_s", "tokens_per_joule", "estimate_error", "within_limits")

RESULT_DOCUMENT = _all(
    {
        "id": (Text("[0-9A-Za-z._-]+", "an id"), "the name of its file"),
        "at": (Text(), "when it began, ISO 8601 in UTC"),
        "targets": (
            Listing(
                _all(
                    {
                        "name": (Text(most=_LONG), "the engine"),
                        "url": (Text(most=_LONG), "its address"),
                        "model": (Text(most=_LONG), "the served name"),
                        "vllm_version": (OrNull(Text()), "as the server tells it"),
                        "spec": (OrNull(SpecShape()), "its plan; null for an engine elsewhere"),
                        "layers": (Listing(Whole(0, _MANY), _MANY), "of each stage"),
                    }
                ),
                _MANY,
            ),
            "the engines that the load was split between",
        ),
        "workload": (
            _all(
                {
                    "input_tokens": (_COUNT, "of each request"),
                    "output_tokens": (_COUNT, "of each request"),
                    "concurrency": (Listing(Whole(1, _MANY), _MANY), "the axis of a closed loop"),
                    "rates": (Listing(Number(0, 1e6), _MANY), "the axis of an open loop; empty in a closed one"),
                    "requests": (OrNull(_COUNT), "of each level; null: as many as fill it three times over"),
                    "seed": (Whole(-(1 << 53), 1 << 53), "of prompts and arrivals"),
                    "generator": (OneOf(tuple(each.value for each in Generator)), "who made the load"),
                }
            ),
            "what was asked",
        ),
        "limits": (
            _all({"first_token": (_SECONDS, "of the median"), "p99": (_SECONDS, "of 99 in 100")}),
            "what was wanted of the time to the first token",
        ),
        "levels": (Listing(_LEVEL, _MANY), "what came of it, level by level"),
        "box": (Text(most=_LONG), "the machine"),
        "cards": (
            Listing(
                _all(
                    {
                        "gpu": (Whole(0, MAX_INDEX), "index"),
                        "name": (Text(), "as the driver calls it"),
                        "memory_bytes": (Whole(0, MAX_BYTES), "in all"),
                    }
                ),
                _MANY,
            ),
            "the cards of the engines",
        ),
        "partial": (Flag(), "whether it was cancelled"),
        "notes": (Listing(Text(most=_LONG), _MANY), "what one has to know beside the figures"),
    }
)
RESULTS_DOCUMENT = _all({"results": (Listing(RESULT_DOCUMENT, _MANY), "every result that is kept, oldest first")})


def document(result: Result) -> dict[str, Any]:
    """JSON's own types all through, with what can be reckoned from the rest beside it, for those who read it."""
    told: dict[str, Any] = json.loads(json.dumps(asdict(result)))
    for target, plain in zip(result.targets, told["targets"], strict=True):
        plain["spec"] = None if target.spec is None else json.loads(spec_json.dumps(target.spec))
    for level, plain in zip(result.levels, told["levels"], strict=True):
        plain["errors"] = [{"why": why, "requests": count} for why, count in level.errors.items()]
        plain |= {name: getattr(level, name) for name in _DERIVED[:-1]}
        plain["within_limits"] = level.within(result.limits)
    return told


def result_from(told: object) -> Result:
    """What `document` wrote.  Raises ShapeError naming what is wrong."""
    RESULT_DOCUMENT.check(told, "")
    assert isinstance(told, dict)
    work = told["workload"]
    return Result(
        id=told["id"],
        at=told["at"],
        targets=tuple(_target(each) for each in told["targets"]),
        workload=Workload(
            **work
            | {
                "concurrency": tuple(work["concurrency"]),
                "rates": tuple(work["rates"]),
                "generator": Generator(work["generator"]),
            }
        ),
        limits=Limits(**told["limits"]),
        levels=tuple(_level(each) for each in told["levels"]),
        box=told["box"],
        cards=tuple(CardFacts(**each) for each in told["cards"]),
        partial=told["partial"],
        notes=tuple(told["notes"]),
    )


def _target(told: dict[str, Any]) -> Target:
    spec = None if told["spec"] is None else spec_json.loads(json.dumps(told["spec"]))
    return Target(**told | {"spec": spec, "layers": tuple(told["layers"])})


def _level(told: dict[str, Any]) -> Level:
    plain = {name: value for name, value in told.items() if name not in _DERIVED}
    for name in ("first_token", "between_tokens", "each_token", "end_to_end"):
        plain[name] = None if told[name] is None else Spread(**told[name])
    plain["queue"] = None if told["queue"] is None else QueueTime(**told["queue"])
    plain["cards"] = tuple(CardUse(**each) for each in told["cards"])
    plain["errors"] = {each["why"]: each["requests"] for each in told["errors"]}
    return Level(**plain)
