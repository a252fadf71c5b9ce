"""A scrape config for Prometheus, and a Grafana dashboard over what gpudeck and vLLM tell.

Queries use vLLM's names from 0.10 on.  `QUERIES` is what the dashboard asks, for tests to try on a real Prometheus.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_QUANTILES = (("50 %", 0.5), ("95 %", 0.95), ("99 %", 0.99))


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    unit: str  # Grafana's name of it
    queries: tuple[tuple[str, str], ...]  # legend and expression
    most: float | None = None


def _card(metric: str) -> tuple[tuple[str, str], ...]:
    return (("GPU {{gpu}}", f"gpudeck_gpu_{metric}"),)


def _latency(metric: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            f"{name} {{{{model_name}}}}",
            f"histogram_quantile({share}, sum by (le, model_name) (rate({metric}_bucket[5m])))",
        )
        for name, share in _QUANTILES
    )


def _per_model(legend: str, expression: str) -> tuple[tuple[str, str], ...]:
    return ((f"{legend} {{{{model_name}}}}", expression),)


_ROWS: tuple[tuple[str, tuple[_Panel, ...]], ...] = (
    (
        "Cards",
        (
            _Panel("Utilisation", "percentunit", _card("utilization_ratio"), 1),
            _Panel("Memory in use", "bytes", _card("memory_used_bytes")),
            _Panel("Power", "watt", _card("power_watts")),
            _Panel("Temperature", "celsius", _card("temperature_celsius")),
            _Panel(
                "NVLink traffic",
                "Bps",
                (
                    (
                        "GPU {{gpu}}",
                        "gpudeck_gpu_nvlink_transmit_bytes_per_second + gpudeck_gpu_nvlink_receive_bytes_per_second",
                    ),
                ),
            ),
            _Panel(
                "Memory of engines by rank",
                "bytes",
                (("{{engine}} PP{{pp_rank}} TP{{tp_rank}}", 'gpudeck_gpu_process_memory_bytes{engine!=""}'),),
            ),
        ),
    ),
    (
        "Engines",
        (
            _Panel(
                "KV cache in use", "percentunit", _per_model("", "max by (model_name) (vllm:kv_cache_usage_perc)"), 1
            ),
            _Panel(
                "Queue",
                "short",
                _per_model("running", "sum by (model_name) (vllm:num_requests_running)")
                + _per_model("waiting", "sum by (model_name) (vllm:num_requests_waiting)"),
            ),
            _Panel(
                "Tokens a second",
                "short",
                _per_model("generated", "sum by (model_name) (rate(vllm:generation_tokens_total[1m]))")
                + _per_model("prompts", "sum by (model_name) (rate(vllm:prompt_tokens_total[1m]))"),
            ),
            _Panel("Time to first token", "s", _latency("vllm:time_to_first_token_seconds")),
            _Panel("Inter-token latency", "s", _latency("vllm:inter_token_latency_seconds")),
            _Panel(
                "Prefix cache hits",
                "percentunit",
                _per_model(
                    "",
                    "sum by (model_name) (rate(vllm:prefix_cache_hits_total[5m])) / "
                    "sum by (model_name) (rate(vllm:prefix_cache_queries_total[5m]))",
                ),
                1,
            ),
        ),
    ),
)

QUERIES: tuple[str, ...] = tuple(
    expression for _, panels in _ROWS for panel in panels for _, expression in panel.queries
)


def scrape_config(box: str, engines: Mapping[str, str]) -> str:
    """The lines for prometheus.yml: the box at `box` ("host:port"), and each engine's address by its name."""
    lines = ["scrape_configs:", *_job("gpudeck", [(box, {})])]
    if engines:
        lines += _job("vllm", [(address, {"engine": name}) for name, address in engines.items()])
    return "\n".join(lines) + "\n"


def _job(name: str, targets: Iterable[tuple[str, Mapping[str, str]]]) -> list[str]:
    lines = [f"  - job_name: {name}", "    scrape_interval: 5s", "    static_configs:"]
    for address, labels in targets:
        lines.append(f'      - targets: ["{address}"]')
        if labels:
            lines.append("        labels: {" + ", ".join(f'{key}: "{value}"' for key, value in labels.items()) + "}")
    return lines


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana (9 and later) imports it; the data source is asked for at import."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, group in _ROWS:
        panels.append({"type": "row", "title": title, "gridPos": _place(0, top, 24, 1), "id": len(panels) + 1})
        top += 1
        for number, panel in enumerate(group):
            place = _place(number % 3 * 8, top + number // 3 * 8, 8, 8)
            panels.append(_drawn(panel, place, len(panels) + 1))
        top += (len(group) + 2) // 3 * 8
    return {
        "__inputs": [
            {"name": "DS_PROMETHEUS", "label": "Prometheus", "type": "datasource", "pluginId": "prometheus"},
        ],
        "uid": "gpudeck",
        "title": "gpudeck: cards and engines",
        "schemaVersion": 37,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "panels": panels,
    }


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _drawn(panel: _Panel, place: dict[str, int], number: int) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
    limits = {"min": 0} | ({"max": panel.most} if panel.most is not None else {})
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "gridPos": place,
        "datasource": source,
        "fieldConfig": {"defaults": {"unit": panel.unit, **limits}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": source, "expr": expression, "legendFormat": legend.strip()}
            for place, (legend, expression) in enumerate(panel.queries)
        ],
    }
