"""The server that Prometheus scrapes: where it answers, and to whom."""

from collections.abc import Iterator

import httpx
import pytest

from gpudeck.services.box.types import Snapshot
from gpudeck.services.errors import OperatorError
from gpudeck.services.exporter.serving import BoxCollector, MetricsServer
from tests.services.box.boxes import busy, pair


def collector() -> BoxCollector:
    made = BoxCollector(lambda: ())
    made.put(Snapshot(pair(), 0.0, (busy(0), busy(1))))
    return made


@pytest.fixture
def guarded() -> Iterator[str]:
    server = MetricsServer(collector(), "127.0.0.1", 0, token="secret-word")
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.close()


def get(url: str, **headers: str) -> httpx.Response:
    return httpx.get(url, headers=headers, trust_env=False)


def test_the_token_opens(guarded: str) -> None:
    answer = get(f"{guarded}/metrics", Authorization="Bearer secret-word")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert "gpudeck_box_up 1.0" in answer.text


@pytest.mark.parametrize(
    "said", ["", "Bearer", "Bearer wrong", "Basic secret-word", "secret-word", "Bearer secret-word2"]
)
def test_without_it_nothing_is_told(guarded: str, said: str) -> None:
    answer = get(f"{guarded}/metrics", **({"Authorization": said} if said else {}))
    assert answer.status_code == 401
    assert "gpudeck_" not in answer.text


@pytest.mark.parametrize("path", ["/", "/metrics/../etc/passwd", "/metricsx"])
def test_other_paths_are_not_there(guarded: str, path: str) -> None:
    assert get(guarded + path).status_code == 404


def test_a_taken_port_is_said() -> None:
    first = MetricsServer(collector(), "127.0.0.1", 0)
    first.start()
    try:
        with pytest.raises(OperatorError, match="--listen"):
            MetricsServer(collector(), "127.0.0.1", first.port)
    finally:
        first.close()
