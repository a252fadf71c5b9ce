"""/metrics read into a sample: a real vLLM's, older names, and what is no vLLM's."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.errors import OperatorError
from gpudeck.services.metrics.reading import read_sample
from gpudeck.services.metrics.types import Counter, Timing

REAL = (Path(__file__).parents[2] / "data" / "metrics-vllm-0.24.txt").read_text()


def test_a_real_vllm_is_read_in_full() -> None:
    sample = read_sample(REAL, 5.0)
    assert (sample.at, sample.running, sample.waiting, sample.kv_cache_usage) == (5.0, 0, 0, 0.0)
    assert set(sample.counters) == set(Counter)
    assert set(sample.timings) == set(Timing)
    assert sample.counters[Counter.PROMPT_TOKENS] > 0
    assert sample.timings[Timing.FIRST_TOKEN].count > 0
    assert sum(sample.outcomes.values()) == sample.timings[Timing.END_TO_END].count
    assert sample.kv_cache_tokens is not None
    assert sample.kv_cache_tokens > 100_000


def test_names_of_older_versions() -> None:
    """vLLM 0.8 to 0.10: gpu_cache_usage_perc, gpu_prefix_cache_*, time_per_output_token_seconds, blocks for tokens."""
    sample = read_sample(
        'vllm:gpu_cache_usage_perc{model_name="m"} 0.5\n'
        'vllm:gpu_prefix_cache_queries_total{model_name="m"} 10\n'
        'vllm:gpu_prefix_cache_hits_total{model_name="m"} 4\n'
        'vllm:time_per_output_token_seconds_bucket{le="0.1",model_name="m"} 3\n'
        'vllm:time_per_output_token_seconds_bucket{le="+Inf",model_name="m"} 4\n'
        'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1\n',
        0.0,
    )
    assert sample.kv_cache_usage == 0.5
    assert sample.counters == {Counter.PREFIX_QUERIES: 10, Counter.PREFIX_HITS: 4}
    assert sample.timings[Timing.INTER_TOKEN].counts == (3, 4)
    assert sample.kv_cache_tokens == 1600
    assert sample.running is None


def test_the_cores_of_a_server_count_together() -> None:
    sample = read_sample(
        'vllm:num_requests_running{engine="0"} 2\nvllm:num_requests_running{engine="1"} 3\n'
        'vllm:kv_cache_usage_perc{engine="0"} 0.2\nvllm:kv_cache_usage_perc{engine="1"} 0.9\n',
        0.0,
    )
    assert sample.running == 5
    assert sample.kv_cache_usage == 0.9


@pytest.mark.parametrize("text", ["", "<html>hello</html>", "process_cpu_seconds_total 1\n", "vllm:x{ 1\n", "\0\0"])
def test_what_is_no_vllm_is_said(text: str) -> None:
    with pytest.raises(OperatorError, match="vLLM"):
        read_sample(text, 0.0)


@given(
    st.text(max_size=200) | st.text(alphabet='vllm:num_requests_running{}"=,.0123456789eE+-Inf NaN\n#', max_size=200)
)
def test_foreign_text_is_refused_or_read(text: str) -> None:
    with contextlib.suppress(OperatorError):
        assert read_sample(text, 1.0).at == 1.0
