"""Queue time from an engine's own histogram."""

import pytest

from gpudeck.services.bench.queueing import QueueSample, queue_time, sample_in
from gpudeck.services.errors import OperatorError


def metrics(total: float, *counts: int) -> QueueSample | None:
    bounds = ("0.3", "0.5", "+Inf")
    buckets = [
        f'vllm:request_queue_time_seconds_bucket{{engine="0",le="{bound}"}} {count}'
        for bound, count in zip(bounds, counts, strict=True)
    ]
    return sample_in(
        "# TYPE vllm:request_queue_time_seconds histogram\n"
        + "\n".join(buckets)
        + f'\nvllm:request_queue_time_seconds_sum{{engine="0"}} {total}\n'
        + f'vllm:request_queue_time_seconds_count{{engine="0"}} {counts[-1]}\n'
    )


def test_the_mean_is_exact_and_the_percentile_as_fine_as_the_buckets() -> None:
    told = queue_time([metrics(1.0, 4, 4, 4)], [metrics(1.4, 8, 8, 8)])
    assert told is not None
    assert told.mean == pytest.approx(0.1)
    assert told.p99 <= told.finest == 0.3


def test_the_engine_that_kept_them_waiting_longest_counts() -> None:
    told = queue_time([metrics(0, 0, 0, 0)] * 2, [metrics(0.4, 4, 4, 4), metrics(2.0, 0, 4, 4)])
    assert told is not None
    assert told.mean == pytest.approx(0.5)
    assert told.p99 > told.finest


def test_nothing_is_told_of_an_engine_that_began_anew_or_says_nothing() -> None:
    assert queue_time([metrics(9.0, 9, 9, 9)], [metrics(0.1, 1, 1, 1)]) is None
    assert queue_time([None], [metrics(0.1, 1, 1, 1)]) is None
    assert queue_time([metrics(1.0, 4, 4, 4)], [metrics(1.0, 4, 4, 4)]) is None
    with pytest.raises(OperatorError):
        sample_in("<html>")
