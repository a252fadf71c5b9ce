"""A server that answers completions at a pace of its own and keeps count of what is asked of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.services.http.stub import Stub, answer, chunk, serving

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"


@dataclass
class Pace:
    """How it answers; `at_once` and `most` count the requests that are being answered."""

    pieces: int = 3
    gap: float = 0.001
    refused: bytes | None = None  # given from the third request on
    broken: bool = False  # it hangs up after the first piece
    endless: bool = False
    at_once: int = 0
    most: int = 0
    ended: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)


@asynccontextmanager
async def completing(pace: Pace) -> AsyncIterator[Stub]:
    async with serving() as stub:

        async def reply(writer: asyncio.StreamWriter) -> None:
            # All of them are of one size: another's that came at the same moment is as good.
            asked = json.loads(stub.requests[-1][2])
            pace.asked.append(asked)
            pace.at_once += 1
            pace.most = max(pace.most, pace.at_once)
            try:
                if pace.refused is not None and len(pace.asked) > 2:
                    writer.write(pace.refused)
                else:
                    await _stream(writer, pace, asked)
                await writer.drain()
                writer.close()
            finally:
                pace.at_once -= 1
                pace.ended += 1

        stub.replies |= {
            "/v1/models": answer(200, '{"data": [{"id": "tiny"}]}'),
            "/version": answer(200, '{"version": "0.32.0"}'),
            "/v1/completions": reply,
        }
        yield stub


async def _stream(writer: asyncio.StreamWriter, pace: Pace, asked: dict[str, Any]) -> None:
    def event(document: dict[str, Any]) -> bytes:
        return chunk(f"data: {json.dumps(document)}\n\n".encode())

    writer.write(HEAD)
    number = 0
    while pace.endless or number < pace.pieces:
        await asyncio.sleep(pace.gap)
        number += 1
        last = number == pace.pieces and not pace.endless
        writer.write(event({"choices": [{"text": "", "finish_reason": "length" if last else None}]}))
        if pace.broken:
            return
        await writer.drain()
    usage = {"prompt_tokens": len(asked["prompt"]), "completion_tokens": asked["max_tokens"]}
    writer.write(event({"choices": [], "usage": usage}) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
