"""A server with a script: it answers each request with the bytes that the test laid down for its path."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Stub:
    """What is served, and what was asked.  A reply is bytes (sent, then the connection is closed) or a coroutine."""

    url: str = ""
    replies: dict[str, bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)  # path, headers, body
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)  # the client closed while a coroutine answered


def answer(status: int, body: str, kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body.encode())}\r\n"
    return f"{head}Connection: close\r\n\r\n{body}".encode()


def stream(*events: str, end: str = "0\r\n\r\n") -> bytes:
    """A chunked event stream; `end` "" breaks it off before its last chunk."""
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    chunks = b"".join(chunk(f"data: {event}\n\n".encode()) for event in events)
    return head + chunks + end.encode()


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@asynccontextmanager
async def serving() -> AsyncIterator[Stub]:
    stub = Stub()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            path = head[0].split(" ")[1]
            stub.requests.append((path, headers, body))
            reply = stub.replies.get(path, answer(404, '{"detail":"Not Found"}'))
            if isinstance(reply, bytes):
                writer.write(reply)
                await writer.drain()
            else:
                replying = asyncio.ensure_future(reply(writer))
                await reader.read()  # returns when the client closes
                replying.cancel()
                stub.hung_up.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    stub.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield stub
