"""How long requests waited inside engines, by their own histograms."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpudeck.services.bench.types import QueueTime
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.client import VllmClient
from gpudeck.services.metrics.reading import read_sample
from gpudeck.services.metrics.types import Histogram, Timing
from gpudeck.services.metrics.window import quantile

_SUM = "vllm:request_queue_time_seconds_sum"


@dataclass(frozen=True, slots=True)
class QueueSample:
    """What an engine has counted so far; `total` is the seconds of all its requests."""

    histogram: Histogram
    total: float


async def sample(client: VllmClient) -> QueueSample | None:
    """What /metrics says now; None where it says nothing (a proxy, statistics turned off)."""
    try:
        return sample_in(await client.metrics())
    except OperatorError:
        return None


def sample_in(text: str) -> QueueSample | None:
    """Raises OperatorError for what is no vLLM's metrics."""
    histogram = read_sample(text, 0.0).timings.get(Timing.QUEUE)
    if histogram is None:
        return None
    total = 0.0
    for line in text.splitlines():
        if line.startswith(_SUM):
            try:
                total += float(line.rpartition(" ")[2])
            except ValueError:
                return None
    return QueueSample(histogram, total)


def queue_time(before: Sequence[QueueSample | None], after: Sequence[QueueSample | None]) -> QueueTime | None:
    """Between two samples of each engine; of several engines the one that kept requests waiting longest."""
    found = [
        told
        for early, late in zip(before, after, strict=True)
        if early is not None and late is not None and (told := _between(early, late)) is not None
    ]
    return max(found, key=lambda queue: queue.mean, default=None)


def _between(early: QueueSample, late: QueueSample) -> QueueTime | None:
    if late.histogram.bounds != early.histogram.bounds or late.histogram.count < early.histogram.count:
        return None  # the engine was started anew meanwhile
    counts = tuple(max(b - a, 0.0) for a, b in zip(early.histogram.counts, late.histogram.counts, strict=True))
    grown = Histogram(late.histogram.bounds, counts)
    if grown.count <= 0:
        return None
    return QueueTime(max(late.total - early.total, 0.0) / grown.count, quantile(grown, 0.99), grown.bounds[0])
