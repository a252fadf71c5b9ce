"""Rates and percentiles over samples: time, restarts, counters that begin anew, buckets of another version."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.metrics.types import Counter, EngineRates, EngineSample, Histogram, Timing
from gpudeck.services.metrics.window import Window, quantile

BOUNDS = (0.1, 1.0, math.inf)


def sample(at: float, tokens: float = 0, first_token: tuple[float, ...] = (0, 0, 0), **outcomes: float) -> EngineSample:
    return EngineSample(
        at,
        counters={Counter.GENERATION_TOKENS: tokens},
        timings={Timing.FIRST_TOKEN: Histogram(BOUNDS, first_token)},
        outcomes=outcomes,
    )


def told(*samples: EngineSample) -> EngineRates:
    window = Window()
    return [window.add(each) for each in samples][-1]


def test_one_sample_tells_no_rate() -> None:
    rates = told(sample(0, 100, (5, 5, 5), stop=7))
    assert rates.generation_tokens_per_s is None
    assert rates.percentiles == {}
    assert rates.outcomes == {"stop": 0}


def test_tokens_a_second_are_of_the_last_seconds() -> None:
    assert told(sample(0, 0), sample(60, 60_000), sample(65, 60_100), sample(70, 60_200)).generation_tokens_per_s == 20


def test_a_restart_counts_from_nothing() -> None:
    rates = told(sample(0, 1000, stop=9), sample(2, 40, stop=1), sample(4, 100, stop=2))
    assert rates.generation_tokens_per_s == 25
    assert rates.outcomes == {"stop": 2}


def test_percentiles_are_of_what_came_meanwhile() -> None:
    rates = told(sample(0, first_token=(90, 100, 100)), sample(5, first_token=(90, 110, 110)))
    assert rates.percentiles[Timing.FIRST_TOKEN][50] == pytest.approx(0.1 + 0.9 * 0.5)


def test_percentiles_after_a_restart() -> None:
    rates = told(sample(0, first_token=(90, 100, 100)), sample(5, first_token=(4, 4, 4)))
    assert rates.percentiles[Timing.FIRST_TOKEN][99] <= 0.1


def test_samples_leave_the_window() -> None:
    rates = told(
        sample(0, first_token=(0, 0, 0)), sample(100, first_token=(50, 50, 50)), sample(400, first_token=(50, 50, 50))
    )
    assert rates.percentiles == {}
    assert rates.span == 0


def test_buckets_of_another_version_are_not_mixed() -> None:
    other = EngineSample(1, timings={Timing.FIRST_TOKEN: Histogram((0.5, math.inf), (3, 3))})
    assert told(sample(0, first_token=(9, 9, 9)), other, sample(2, first_token=(9, 9, 9))).percentiles == {}


def test_the_endless_bucket_gives_its_lower_bound() -> None:
    assert quantile(Histogram(BOUNDS, (0, 0, 4)), 0.99) == 1.0


@given(
    st.lists(st.integers(0, 50), min_size=3, max_size=3).filter(any),
    st.lists(st.floats(0, 1), min_size=2, max_size=2),
)
def test_quantiles_rise_with_their_share(buckets: list[int], shares: list[float]) -> None:
    counts = (buckets[0], buckets[0] + buckets[1], sum(buckets))
    low, high = sorted(shares)
    assert quantile(Histogram(BOUNDS, counts), low) <= quantile(Histogram(BOUNDS, counts), high) <= 1.0
