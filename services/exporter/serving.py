"""The box's metrics over HTTP, for Prometheus to scrape."""

import hmac
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version

from prometheus_client.core import CollectorRegistry, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from gpudeck.services.box.types import Snapshot
from gpudeck.services.engine.types import UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.exporter.families import box_families, engine_families

_SLOW_CLIENT_S = 10.0


class BoxCollector(Collector):
    """The newest snapshot and the engines.  `put` on the sampler's thread, `collect` on a request's."""

    def __init__(self, engines: Callable[[], Iterable[UnitState]]) -> None:
        """`engines` may raise OperatorError: then none are told."""
        self._engines = engines
        self._latest: Snapshot | OperatorError | None = None

    def put(self, outcome: Snapshot | OperatorError) -> None:
        self._latest = outcome

    def collect(self) -> Iterator[Metric]:
        build = GaugeMetricFamily("gpudeck_build_info", "The gpudeck that tells all this.", labels=["version"])
        build.add_metric([version("gpudeck")], 1)
        yield build
        latest = self._latest
        up = GaugeMetricFamily("gpudeck_box_up", "Whether the driver can be read.")
        up.add_metric([], isinstance(latest, Snapshot))
        yield up
        if isinstance(latest, Snapshot):
            yield from box_families(latest, time.time())
        try:
            units = tuple(self._engines())
        except OperatorError:
            return
        yield from engine_families(units)


class MetricsServer:
    """Answers GET /metrics on `host`:`port` (0: any that is free) from threads of its own."""

    def __init__(self, collector: BoxCollector, host: str, port: int, token: str | None = None) -> None:
        """Raises OperatorError where it can not listen there."""
        registry = CollectorRegistry()
        registry.register(collector)
        handler = type("MetricsHandler", (_Handler,), {"registry": registry, "token": token})
        try:
            self._server = ThreadingHTTPServer((host, port), handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise OperatorError(
                f"Nothing can listen on {host}:{port} ({reason}): choose another address with --listen."
            ) from None
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def serve(self) -> None:
        """Until `close` is called from another thread, or KeyboardInterrupt."""
        self._server.serve_forever(poll_interval=0.2)

    def start(self) -> None:
        threading.Thread(target=self.serve, name="gpudeck-metrics", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    token: str | None = None
    timeout = _SLOW_CLIENT_S
    server_version = "gpudeck"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(404, b"The metrics are at /metrics.\n")
        elif not self._allowed():
            self._answer(401, b"A bearer token is needed.\n", ("WWW-Authenticate", "Bearer"))
        else:
            self._answer(200, generate_latest(self.registry), kind=CONTENT_TYPE_LATEST)

    def _allowed(self) -> bool:
        if self.token is None:
            return True
        said = self.headers.get("Authorization", "")
        return hmac.compare_digest(said.encode(), f"Bearer {self.token}".encode())

    def _answer(self, status: int, body: bytes, *headers: tuple[str, str], kind: str = "text/plain") -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A line for every scrape would fill the journal."""
