"""From requests to figures."""

from collections import Counter
from collections.abc import Iterable, Sequence

from gpudeck.services.bench.types import Level, Request, Spread


def spread(values: Iterable[float]) -> Spread | None:
    """None of nothing.  Percentiles lie between neighbours, as numpy's and so vLLM's do."""
    ordered = sorted(values)
    if not ordered:
        return None
    return Spread(sum(ordered) / len(ordered), *(_percentile(ordered, share) for share in (0.5, 0.9, 0.95, 0.99)))


def _percentile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def level_of(level: float, wanted: int, requests: Sequence[Request], *, partial: bool = False) -> Level:
    """The figures of a level's requests; of those that failed only why counts, and the time that they took."""
    good = [request for request in requests if not request.error]
    return Level(
        level=level,
        wanted=wanted,
        completed=len(good),
        errors=dict(Counter(request.error for request in requests if request.error)),
        seconds=_span(requests),
        input_tokens=sum(request.input_tokens for request in good),
        output_tokens=sum(request.output_tokens for request in good),
        first_token=spread(request.first for request in good if request.first is not None),
        between_tokens=spread(gap for request in good for gap in request.gaps),
        each_token=spread(each for request in good if (each := request.each_token) is not None),
        end_to_end=spread(request.seconds for request in good),
        partial=partial,
    )


def _span(requests: Sequence[Request]) -> float:
    if not requests:
        return 0.0
    return max(request.began + request.seconds for request in requests) - min(request.began for request in requests)
