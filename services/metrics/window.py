"""Rates and percentiles from samples over the last minutes, through restarts and counters that begin anew."""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from gpudeck.services.metrics.types import Counter, EngineRates, EngineSample, Histogram, Timing

PERCENTILES = (50, 95, 99)
RATE_S = 10.0  # tokens a second are told over this long, percentiles over the whole window


class Window:
    """The samples of the last `seconds`, and what they say.  Not thread-safe: one poller owns it."""

    def __init__(self, seconds: float = 180.0) -> None:
        self._seconds = seconds
        self._samples: deque[EngineSample] = deque()

    def add(self, sample: EngineSample) -> EngineRates:
        """Take a sample in, drop what is older than the window, and tell."""
        samples = self._samples
        if samples and sample.at <= samples[-1].at:
            samples.clear()  # another clock, or the same moment: nothing can be told from the two
        samples.append(sample)
        while samples[0].at < sample.at - self._seconds:
            samples.popleft()
        return self._rates(tuple(samples))

    def _rates(self, samples: Sequence[EngineSample]) -> EngineRates:
        latest = samples[-1]
        recent = [sample for sample in samples if sample.at >= latest.at - RATE_S]
        if len(recent) < 2:
            recent = list(samples[-2:])
        queries = _increase(samples, Counter.PREFIX_QUERIES)
        hits = _increase(samples, Counter.PREFIX_HITS)
        percentiles: dict[Timing, Mapping[int, float]] = {}
        for timing in Timing:
            found = _quantiles(_difference(samples, timing))
            if found:
                percentiles[timing] = found
        return EngineRates(
            span=latest.at - samples[0].at,
            latest=latest,
            prompt_tokens_per_s=_per_second(recent, Counter.PROMPT_TOKENS),
            generation_tokens_per_s=_per_second(recent, Counter.GENERATION_TOKENS),
            prefix_hit_rate=min(hits / queries, 1.0) if queries and hits is not None else None,
            preemptions=round(_increase(samples, Counter.PREEMPTIONS) or 0),
            percentiles=percentiles,
            outcomes=_outcome_increase(samples),
        )


def _grown(values: Iterator[tuple[float, float]]) -> float:
    """How far a counter rose; where it fell the engine was started anew and has counted from 0."""
    return sum(after - before if after >= before else after for before, after in values)


def _increase(samples: Sequence[EngineSample], counter: Counter) -> float | None:
    told = [sample.counters[counter] for sample in samples if counter in sample.counters]
    return _grown(pairwise(told)) if len(told) > 1 else None


def _per_second(samples: Sequence[EngineSample], counter: Counter) -> float | None:
    increase = _increase(samples, counter)
    span = samples[-1].at - samples[0].at
    return increase / span if increase is not None and span > 0 else None


def _outcome_increase(samples: Sequence[EngineSample]) -> dict[str, int]:
    reasons = sorted({reason for sample in samples for reason in sample.outcomes})
    return {
        reason: round(_grown(pairwise([sample.outcomes.get(reason, 0.0) for sample in samples]))) for reason in reasons
    }


def _difference(samples: Sequence[EngineSample], timing: Timing) -> Histogram:
    """What was counted between the first sample and the last; bounds are those of the last."""
    told = [sample.timings[timing] for sample in samples if timing in sample.timings]
    if len(told) < 2:
        return Histogram()
    bounds = told[-1].bounds
    same = [histogram for histogram in told if histogram.bounds == bounds]  # another version's buckets do not add up
    counts = [0.0] * len(bounds)
    for before, after in pairwise(same):
        anew = after.count < before.count
        for place, count in enumerate(after.counts):
            counts[place] += count if anew else max(count - before.counts[place], 0.0)
    return Histogram(bounds, tuple(counts))


def _quantiles(histogram: Histogram) -> dict[int, float]:
    if histogram.count <= 0:
        return {}
    return {percent: quantile(histogram, percent / 100) for percent in PERCENTILES}


def quantile(histogram: Histogram, share: float) -> float:
    """The value below which `share` of the observations lie, spread evenly inside each bucket as Prometheus's
    histogram_quantile has it; in the last, endless bucket its lower bound.  `histogram` must hold an observation.
    """
    wanted = share * histogram.count
    lower, below = 0.0, 0.0
    for bound, count in zip(histogram.bounds, histogram.counts, strict=True):
        if count >= wanted and count > below:
            return lower if math.isinf(bound) else lower + (bound - lower) * (wanted - below) / (count - below)
        lower, below = (lower if math.isinf(bound) else bound), count
    return lower
