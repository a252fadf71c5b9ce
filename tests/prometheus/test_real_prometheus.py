"""A real Prometheus scrapes the box and an engine, and answers every query of the dashboard."""

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from gpudeck.services.box.types import GIB, GpuProcess, Snapshot
from gpudeck.services.exporter.dashboard import QUERIES, scrape_config
from gpudeck.services.exporter.serving import BoxCollector, MetricsServer
from tests.services.box.boxes import busy, pair
from tests.services.simulator.conftest import Engines, engines, free_port

__all__ = ["engines"]
pytestmark = pytest.mark.prometheus
PROGRAM = Path(__file__).parents[1] / "rigs" / "prometheus_program"
WORKER = GpuProcess(11, "VLLM::EngineCore", 20 * GIB, engine="chat", tp_rank=0, pp_rank=0)


@pytest.fixture
def box() -> Iterator[MetricsServer]:
    collector = BoxCollector(lambda: ())
    first = replace(busy(0, WORKER), nvlink_tx_bytes_s=1e9, nvlink_rx_bytes_s=2e9)
    collector.put(Snapshot(pair(), time.time(), (first, busy(1))))
    server = MetricsServer(collector, "127.0.0.1", 0)
    server.start()
    yield server
    server.close()


@pytest.fixture
def prometheus(tmp_path: Path, box: MetricsServer, engines: Engines) -> Iterator[str]:
    engine = engines.ready()
    config = tmp_path / "prometheus.yml"
    text = scrape_config(f"127.0.0.1:{box.port}", {"chat": f"127.0.0.1:{engine.port}"})
    config.write_text(text.replace("scrape_interval: 5s", "scrape_interval: 200ms\n    scrape_timeout: 200ms"))
    program = subprocess.run([PROGRAM], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    port = free_port()
    command = [program, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log) as running,
    ):
        _chat(engine.url)
        yield f"http://127.0.0.1:{port}"
        running.terminate()


def _chat(url: str) -> None:
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 8}
    httpx.post(f"{url}/v1/chat/completions", json=body, trust_env=False, timeout=20).raise_for_status()


def asked(prometheus: str, query: str) -> list[dict[str, object]]:
    answer = httpx.get(f"{prometheus}/api/v1/query", params={"query": query}, trust_env=False)
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        return []  # it listens, and is still opening its storage
    document = json.loads(answer.text)
    assert document["status"] == "success", (query, document)
    result: list[dict[str, object]] = document["data"]["result"]
    return result


def until(prometheus: str, query: str) -> list[dict[str, object]]:
    """The answer, once there is one."""
    deadline = time.monotonic() + 30
    while True:
        try:
            found = asked(prometheus, query)
        except httpx.TransportError:
            found = []
        if found:
            return found
        assert time.monotonic() < deadline, f"nothing for {query}"
        time.sleep(0.1)


def test_everything_on_the_dashboard_is_answered(prometheus: str, engines: Engines) -> None:
    targets = until(prometheus, "up == 1")
    deadline = time.monotonic() + 30
    while len(targets) < 2 and time.monotonic() < deadline:
        targets = asked(prometheus, "up == 1")
    assert len(targets) == 2
    _chat(engines.started[0].url)
    for query in QUERIES:
        until(prometheus, query)
    assert asked(prometheus, 'sum(gpudeck_gpu_process_memory_bytes{engine="chat"})')[0]["value"][1] == str(20 * GIB)  # type: ignore[index]
