"""The figures of /metrics, under vLLM's names."""

import threading
import time
from bisect import bisect_left

# vLLM's own buckets (vllm/v1/metrics/loggers.py), thinned out.
_BUCKETS = {
    "time_to_first_token_seconds": (0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0),
    "inter_token_latency_seconds": (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0),
    "request_time_per_output_token_seconds": (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0),
    "e2e_request_latency_seconds": (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0),
    "request_queue_time_seconds": (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0),
}
_REASONS = ("stop", "length", "abort")


class Meter:
    """Counts requests and tokens; every method may be called from any thread."""

    def __init__(self, model: str, kv_cache_tokens: int) -> None:
        self._labels = f'engine="0",model_name="{model.translate(_ESCAPES)}"'
        self._kv_cache_tokens = kv_cache_tokens
        self.began = time.time()
        self._guard = threading.Lock()
        self._gauges = {"num_requests_running": 0, "num_requests_waiting": 0}
        self._held = 0  # tokens of running requests
        self._counters = {"prompt_tokens": 0, "generation_tokens": 0, "num_preemptions": 0}
        self._counters |= {"prefix_cache_queries": 0, "prefix_cache_hits": 0}
        self._ended = dict.fromkeys(_REASONS, 0)
        self._counts = {name: [0] * (len(buckets) + 1) for name, buckets in _BUCKETS.items()}
        self._sums = dict.fromkeys(_BUCKETS, 0.0)

    @property
    def running(self) -> int:
        return self._gauges["num_requests_running"]

    def move(self, *, waiting: int = 0, running: int = 0, held: int = 0) -> None:
        """Change the gauges by these amounts."""
        with self._guard:
            self._gauges["num_requests_waiting"] += waiting
            self._gauges["num_requests_running"] += running
            self._held += held

    def count(self, prompt: int = 0, generated: int = 0, ended: str | None = None) -> None:
        with self._guard:
            self._counters["prompt_tokens"] += prompt
            self._counters["prefix_cache_queries"] += prompt
            self._counters["generation_tokens"] += generated
            if ended is not None:
                self._ended[ended] += 1

    def observe(self, name: str, seconds: float) -> None:
        with self._guard:
            self._counts[name][bisect_left(_BUCKETS[name], seconds)] += 1
            self._sums[name] += seconds

    def text(self) -> str:
        """Prometheus's exposition format 0.0.4."""
        with self._guard:
            lines = []
            for name, number in self._gauges.items():
                lines += [f"# TYPE vllm:{name} gauge", f"vllm:{name}{{{self._labels}}} {float(number)}"]
            usage = min(self._held / max(self._kv_cache_tokens, 1), 1.0)
            lines += ["# TYPE vllm:kv_cache_usage_perc gauge", f"vllm:kv_cache_usage_perc{{{self._labels}}} {usage}"]
            for name, number in self._counters.items():
                lines += [f"# TYPE vllm:{name}_total counter", f"vllm:{name}_total{{{self._labels}}} {float(number)}"]
            lines.append("# TYPE vllm:request_success_total counter")
            for reason, number in self._ended.items():
                labels = f'finished_reason="{reason}",{self._labels}'
                lines.append(f"vllm:request_success_total{{{labels}}} {float(number)}")
            for name, buckets in _BUCKETS.items():
                lines += self._histogram(name, buckets)
            lines.append("# TYPE vllm:cache_config_info gauge")
            labels = f'block_size="16",num_gpu_blocks="{self._kv_cache_tokens // 16}",{self._labels}'
            lines.append(f'vllm:cache_config_info{{{labels},kv_cache_size_tokens="{self._kv_cache_tokens}"}} 1.0')
        return "\n".join(lines) + "\n"

    def _histogram(self, name: str, buckets: tuple[float, ...]) -> list[str]:
        lines = [f"# TYPE vllm:{name} histogram"]
        total = 0
        for bound, number in zip((*map(str, buckets), "+Inf"), self._counts[name], strict=True):
            total += number
            lines.append(f'vllm:{name}_bucket{{le="{bound}",{self._labels}}} {float(total)}')
        lines.append(f"vllm:{name}_count{{{self._labels}}} {float(total)}")
        lines.append(f"vllm:{name}_sum{{{self._labels}}} {self._sums[name]}")
        return lines


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
