"""The OpenAI-compatible server of the simulated engine, with vLLM's addresses and documents."""

import json
import os
import socket
import uuid
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gpudeck.services.simulator import log
from gpudeck.services.simulator.generation import Generator, Request, RequestError
from gpudeck.services.simulator.memory import Load
from gpudeck.services.simulator.meter import Meter
from gpudeck.services.simulator.options import Options

VERSION = "0.0.0+gpudeck.simulated"
OWNER = "gpudeck-simulated"
_MAX_BODY = 16 << 20


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, bound: socket.socket, options: Options, load: Load, meter: Meter, generator: Generator, key: str | None
    ) -> None:
        """`bound` is a socket with its address that does not listen yet: nothing can connect until `listen`."""
        super().__init__(bound.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = bound
        self.options, self.load, self.meter, self.generator, self.key = options, load, meter, generator, key

    def listen(self) -> None:
        self.server_activate()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is its own affair."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "uvicorn"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if not self._allowed(path):
            return
        if path in ("/health", "/ping"):
            self._send(HTTPStatus.OK, b"", "application/json")
        elif path == "/v1/models":
            self._json(HTTPStatus.OK, self._models())
        elif path == "/version":
            self._json(HTTPStatus.OK, {"version": VERSION})
        elif path == "/metrics":
            self._send(HTTPStatus.OK, self.server.meter.text().encode(), "text/plain; version=0.0.4; charset=utf-8")
        else:
            self._json(HTTPStatus.NOT_FOUND, {"detail": "Not Found"})

    def do_POST(self) -> None:
        path = self.path.split("?")[0]
        body = self._body()
        if body is None or not self._allowed(path):
            return
        if path not in ("/v1/chat/completions", "/v1/completions"):
            self._json(HTTPStatus.NOT_FOUND, {"detail": "Not Found"})
            return
        try:
            request = self.server.generator.accept(body, chat=path.endswith("chat/completions"))
        except RequestError as error:
            self._json(error.status, error.document)
            return
        if request.stream:
            self._stream(request)
        else:
            text = "".join(self.server.generator.pieces(request))
            self._json(HTTPStatus.OK, self._document(request, _whole(request, text), usage=request.usage))

    def _allowed(self, path: str) -> bool:
        """As in vLLM the key guards /v1 and no other address."""
        if self.server.key and path.startswith("/v1") and self.headers["Authorization"] != f"Bearer {self.server.key}":
            self._json(HTTPStatus.UNAUTHORIZED, {"error": "Unauthorized"})
            return False
        return True

    def _body(self) -> dict[str, Any] | None:
        try:
            length = int(self.headers.get("Content-Length", "0"))
            body = json.loads(self.rfile.read(length)) if 0 <= length <= _MAX_BODY else None
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            self.close_connection = True
            error = RequestError(HTTPStatus.BAD_REQUEST, "BadRequestError", "The body is no JSON object.")
            self._json(error.status, error.document)
            return None
        return body

    def _models(self) -> dict[str, Any]:
        model = {
            "id": self.server.options.served_name,
            "object": "model",
            "created": int(self.server.meter.began),
            "owned_by": OWNER,
            "root": self.server.options.model,
            "parent": None,
            "max_model_len": self.server.load.max_model_len,
        }
        return {"object": "list", "data": [model]}

    def _stream(self, request: Request) -> None:
        self._log_request(HTTPStatus.OK)
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        name = f"{'chatcmpl' if request.chat else 'cmpl'}-{uuid.uuid4().hex}"
        pieces = self.server.generator.pieces(request)
        try:
            if request.chat:
                self._event(request, name, {"delta": {"role": "assistant", "content": ""}, "finish_reason": None})
            for piece in pieces:
                choice: dict[str, Any] = {"delta": {"content": piece}} if request.chat else {"text": piece}
                self._event(request, name, choice | {"finish_reason": None})
            choice = {"delta": {}} if request.chat else {"text": ""}
            self._event(request, name, choice | {"finish_reason": request.finish_reason})
            if request.include_usage:
                self._event(request, name, None, usage=request.usage)
            self._chunk(b"data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True  # the client is gone, and with it the request
        finally:
            pieces.close()

    def _event(self, request: Request, name: str, choice: dict[str, Any] | None, **more: Any) -> None:
        document = self._document(request, choice, name=name, **more)
        self._chunk(f"data: {json.dumps(document, ensure_ascii=False)}\n\n".encode())

    def _document(self, request: Request, choice: dict[str, Any] | None, name: str = "", **more: Any) -> dict[str, Any]:
        kind = "text_completion"
        if request.chat:
            kind = "chat.completion.chunk" if request.stream else "chat.completion"
        return {
            "id": name or f"cmpl-{uuid.uuid4().hex}",
            "object": kind,
            "created": request.created,
            "model": self.server.options.served_name,
            "choices": [] if choice is None else [{"index": 0, "logprobs": None} | choice],
        } | more

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _json(self, status: HTTPStatus, document: dict[str, Any]) -> None:
        self._send(status, json.dumps(document, ensure_ascii=False).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self._log_request(status)
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def _log_request(self, status: HTTPStatus) -> None:
        if self.path.split("?")[0] in self.server.options.unlogged:
            return
        host, port = self.client_address[:2]
        asked = f'"{self.command} {self.path} HTTP/1.1" {status.value} {status.phrase}'
        log.uvicorn(os.getpid(), f"{host}:{port} - {asked}")

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are logged in uvicorn's form instead."""


def _whole(request: Request, text: str) -> dict[str, Any]:
    answer = {"message": {"role": "assistant", "content": text}} if request.chat else {"text": text}
    return answer | {"finish_reason": request.finish_reason}
