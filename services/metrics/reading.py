"""vLLM's /metrics, read into a sample whatever the version calls things."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from gpudeck.services.errors import OperatorError
from gpudeck.services.metrics.types import Counter, EngineSample, Histogram, Timing

MAX_TEXT = 1 << 22  # bytes; a server with many adapters sends a few hundred KiB

# What each is called, newest name first; the first that is there counts.  Read in vLLM 0.8 to 0.33.
_COUNTERS: Mapping[Counter, tuple[str, ...]] = {
    Counter.PROMPT_TOKENS: ("vllm:prompt_tokens_total",),
    Counter.GENERATION_TOKENS: ("vllm:generation_tokens_total",),
    Counter.PREEMPTIONS: ("vllm:num_preemptions_total",),
    Counter.PREFIX_QUERIES: ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    Counter.PREFIX_HITS: ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
}
_TIMINGS: Mapping[Timing, tuple[str, ...]] = {
    Timing.FIRST_TOKEN: ("vllm:time_to_first_token_seconds",),
    Timing.INTER_TOKEN: ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    Timing.END_TO_END: ("vllm:e2e_request_latency_seconds",),
    Timing.QUEUE: ("vllm:request_queue_time_seconds",),
}
_KV_CACHE_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
_OUTCOMES = "vllm:request_success_total"
_CACHE_CONFIG = "vllm:cache_config_info"


def read_sample(text: str, at: float) -> EngineSample:
    """The sample that /metrics gave at `at`.  Raises OperatorError for what is no vLLM's metrics."""
    if len(text) > MAX_TEXT:
        raise OperatorError(f"/metrics answered with more than {MAX_TEXT >> 20} MiB: that is no vLLM's.")
    samples: dict[str, list[Sample]] = defaultdict(list)
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.startswith("vllm:") and not math.isnan(sample.value):
                    samples[sample.name].append(sample)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise OperatorError("/metrics answered with something that is no Prometheus text: is it a vLLM?") from None
    if not samples:
        raise OperatorError("/metrics has no vLLM metrics: is it a vLLM, and started without --disable-log-stats?")
    usage = _first(samples, _KV_CACHE_USAGE)
    return EngineSample(
        at=at,
        running=_whole(samples.get("vllm:num_requests_running")),
        waiting=_whole(samples.get("vllm:num_requests_waiting")),
        kv_cache_usage=max(sample.value for sample in usage) if usage else None,
        kv_cache_tokens=_cache_tokens(samples.get(_CACHE_CONFIG, ())),
        counters={
            counter: sum(sample.value for sample in found)
            for counter, names in _COUNTERS.items()
            if (found := _first(samples, names))
        },
        timings={
            timing: _histogram(found)
            for timing, names in _TIMINGS.items()
            if (found := _first(samples, [f"{name}_bucket" for name in names]))
        },
        outcomes=_outcomes(samples.get(_OUTCOMES, ())),
    )


def _first(samples: Mapping[str, list[Sample]], names: Iterable[str]) -> list[Sample]:
    return next((samples[name] for name in names if name in samples), [])


def _whole(found: list[Sample] | None) -> int | None:
    if not found:
        return None
    total = sum(sample.value for sample in found)
    return round(total) if math.isfinite(total) else None


def _cache_tokens(found: Iterable[Sample]) -> int | None:
    """Newer versions tell tokens; older ones blocks and their size."""
    for sample in found:
        labels = sample.labels
        for words in ((labels.get("kv_cache_size_tokens"),), (labels.get("num_gpu_blocks"), labels.get("block_size"))):
            if all(word is not None and word.isdecimal() and len(word) < 16 for word in words):
                return math.prod(int(word) for word in words if word is not None)
    return None


def _histogram(found: Iterable[Sample]) -> Histogram:
    """The buckets of all engine cores and models together."""
    counts: dict[float, float] = defaultdict(float)
    for sample in found:
        try:
            counts[float(sample.labels["le"])] += sample.value
        except (KeyError, ValueError):
            continue
    bounds = sorted(bound for bound in counts if not math.isnan(bound))
    return Histogram(tuple(bounds), tuple(counts[bound] for bound in bounds))


def _outcomes(found: Iterable[Sample]) -> dict[str, float]:
    outcomes: dict[str, float] = defaultdict(float)
    for sample in found:
        outcomes[sample.labels.get("finished_reason", "finished")] += sample.value
    return dict(outcomes)
