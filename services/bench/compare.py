"""Results beside each other: only those of one model and one workload, and what each placement is good for."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpudeck.services.bench.types import Level, Result, Workload

_CLOSE = 0.03  # figures nearer than this are as good


@dataclass(frozen=True, slots=True)
class Group:
    """Results that may be set side by side: the newest of each placement, oldest first."""

    model: str
    workload: Workload
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class Strength:
    """What a result is good for; `words` is "" where another is better at all of it."""

    result: Result
    words: str


def groups(results: Sequence[Result]) -> tuple[Group, ...]:
    """By model and workload, in the order in which each was first measured."""
    found: dict[tuple[str, Workload], dict[object, Result]] = {}
    for result in results:
        if any(level.completed for level in result.levels):
            alike = found.setdefault((result.model, result.workload), {})
            alike.pop(_placement(result), None)
            alike[_placement(result)] = result
    return tuple(Group(model, workload, tuple(alike.values())) for (model, workload), alike in found.items())


def _placement(result: Result) -> object:
    """What makes a result another one than a repetition: all of the specs but their names and ports."""
    return tuple(
        (
            target.spec.placement,
            target.spec.layer_partition,
            target.spec.options.gpu_memory_utilization,
            target.spec.options.max_model_len,
            target.spec.options.max_num_seqs,
            target.spec.options.max_num_batched_tokens,
            target.spec.options.kv_cache_dtype,
            target.spec.options.quantization,
            target.spec.options.enforce_eager,
            target.spec.options.extra,
            target.vllm_version,
        )
        if target.spec is not None
        else target.url
        for target in result.targets
    )


def strengths(group: Group) -> tuple[Strength, ...]:
    """What each result of a group is best at, by the levels that all of them have."""
    shared = _shared_levels(group.results)
    if len(group.results) < 2 or not shared:
        return ()
    least, most = shared[0], shared[-1]
    titles: list[list[str]] = [[] for _ in group.results]

    def award(words: str, values: Sequence[float | None], *, low: bool = False) -> None:
        told = [value for value in values if value is not None and value > 0]
        if len(told) < 2:
            return
        best = min(told) if low else max(told)
        if all(abs(value / best - 1) <= _CLOSE for value in told):
            return  # no difference worth a title
        for title, value in zip(titles, values, strict=True):
            if value is not None and value > 0 and abs(value / best - 1) <= _CLOSE:
                title.append(words)

    first = [_at(result, least) for result in group.results]
    last = [_at(result, most) for result in group.results]
    award("one request's speed", [level.decode_tokens_per_s for level in first])
    award(
        "a quick first token",
        [level.first_token.p99 if level.first_token else None for level in first],
        low=True,
    )
    award("tokens a second under load", [level.tokens_per_s for level in last])
    award("tokens a joule", [level.tokens_per_joule for level in last])
    award("load within the limits", [_within(result, shared) for result in group.results])
    return tuple(Strength(result, ", ".join(title)) for result, title in zip(group.results, titles, strict=True))


def _shared_levels(results: Sequence[Result]) -> list[float]:
    return sorted(
        set.intersection(*({level.level for level in result.levels if level.completed} for result in results))
    )


def _at(result: Result, wanted: float) -> Level:
    return next(level for level in result.levels if level.level == wanted)


def _within(result: Result, shared: Sequence[float]) -> float | None:
    """The greatest shared level up to which the limits were kept; None where already the least missed them."""
    kept = None
    for wanted in shared:
        if not _at(result, wanted).within(result.limits):
            break
        kept = wanted
    return kept
