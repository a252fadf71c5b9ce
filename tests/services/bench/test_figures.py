"""Percentiles, and what a level's requests come to."""

import pytest

from gpudeck.services.bench.figures import level_of, spread
from gpudeck.services.bench.types import CardUse, Level, Limits, Request
from tests.services.bench.results import level


def test_percentiles_lie_between_neighbours_as_numpys() -> None:
    told = spread(float(value) for value in range(1, 101))
    assert told is not None
    assert (told.mean, told.p50, told.p90, told.p95, told.p99) == pytest.approx((50.5, 50.5, 90.1, 95.05, 99.01))
    assert spread([]) is None


def test_failures_count_as_failures_and_as_nothing_else() -> None:
    requests = [
        Request(0, 10.0, 0.1, (0.02, 0.02), 0.14, 5, 3),
        Request(0, 10.1, 0.2, (0.04, 0.04), 0.28, 5, 3),
        Request(0, 10.0, None, (), 1.0, 5, 0, "it broke off"),
    ]
    told = level_of(2, 4, requests)
    assert (told.completed, told.failed, dict(told.errors)) == (2, 1, {"it broke off": 1})
    assert (told.input_tokens, told.output_tokens) == (10, 6)
    assert told.seconds == pytest.approx(1.0)
    assert told.first_token is not None
    assert told.first_token.p50 == pytest.approx(0.15)
    assert told.each_token is not None
    assert told.each_token.mean == pytest.approx(0.03)
    assert told.tokens_per_s == pytest.approx(6.0)


def test_a_level_without_requests_tells_nothing() -> None:
    told = level_of(1, 8, [])
    assert (told.tokens_per_s, told.tokens_per_joule, told.decode_tokens_per_s) == (None, None, None)
    assert told.within(Limits()) is None


def test_joules_are_told_where_every_card_tells_its_power() -> None:
    told = level(1, first=0.1, each=0.02)
    assert told.joules == pytest.approx(600 * told.seconds)
    assert told.tokens_per_joule == pytest.approx(told.output_tokens / 600 / told.seconds)
    assert level(1, first=0.1, each=0.02, watts=None).joules is None
    assert Level(1, 1, 1, seconds=2.0, output_tokens=10, cards=(CardUse(0, power_w=5.0), CardUse(1))).joules is None


@pytest.mark.parametrize(
    ("first", "limits", "kept"),
    [(0.1, Limits(), True), (0.21, Limits(), False), (0.19, Limits(p99=0.2), False), (3.0, Limits(4.0, 5.0), True)],
)
def test_limits(first: float, limits: Limits, kept: bool) -> None:
    assert level(1, first=first, each=0.02).within(limits) is kept


def test_the_estimates_error() -> None:
    assert level(1, first=0.1, each=0.02, estimated=60.0).estimate_error == pytest.approx(0.2)
    assert level(1, first=0.1, each=0.02).estimate_error is None
