"""Prompts and arrivals that a seed repeats."""

import pytest

from gpudeck.services.bench.prompts import arrivals, prompts


@pytest.mark.parametrize("vocabulary", [None, 512, 32_000, 256_000, 3])
def test_prompts_have_their_length_and_known_ids(vocabulary: int | None) -> None:
    drawn = list(prompts(3, 200, 7, vocabulary))
    assert [len(prompt) for prompt in drawn] == [200] * 3
    assert drawn == list(prompts(3, 200, 7, vocabulary))
    assert drawn != list(prompts(3, 200, 8, vocabulary))
    assert all(0 < token < (vocabulary or 500) for prompt in drawn for token in prompt)


def test_arrivals_keep_their_rate() -> None:
    times = arrivals(4000, 8.0, 1)
    assert times == sorted(times)
    assert times[0] == 0
    assert times[-1] == pytest.approx(500, rel=0.1)
    assert times == arrivals(4000, 8.0, 1)
