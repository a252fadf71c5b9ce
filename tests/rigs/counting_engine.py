"""A small server in the place of vLLM whose requests in flight are what a file says: "2 1" runs two, one waits."""

from pathlib import Path

from gpudeck.services.plan.types import EngineOptions, EngineSpec
from tests.rigs.small_engines import engine

_SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        running, waiting = open(sys.argv[2]).read().split()
        body = {
            "/metrics": f"vllm:num_requests_running {running}\\nvllm:num_requests_waiting {waiting}\\n",
            "/v1/models": '{"data": [{"id": "small"}]}',
        }.get(self.path, "").encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


class CountingEngine:
    def __init__(self, folder: Path, name: str, port: int) -> None:
        self._count = folder / f"{name}.count"
        self.has(0)
        server = folder / f"{name}.py"
        server.write_text(_SERVER)
        script = f"exec /usr/bin/python3 {server} {port} {self._count}"
        self.spec: EngineSpec = engine(folder, name, script, options=EngineOptions(port=port))

    def has(self, running: int, waiting: int = 0) -> None:
        """So many requests are in flight from now on."""
        new = self._count.with_suffix(".new")
        new.write_text(f"{running} {waiting}")
        new.replace(self._count)
