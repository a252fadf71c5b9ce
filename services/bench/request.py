"""One request of a load, timed."""

import asyncio
import json
import time
from contextlib import aclosing
from typing import Any

from gpudeck.services.bench.types import Request, Workload
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.client import VllmClient
from gpudeck.services.http.refusals import stream_error

PATH = "/v1/completions"
_END = "[DONE]"


def body(model: str, prompt: list[int], workload: Workload, salt: str) -> dict[str, Any]:
    """The request: exactly so many tokens in and out.

    `salt` keeps the answers of earlier runs with the same seed out of the prefix cache (vLLM 0.9 and later; earlier
    ones take no notice of it).
    """
    tokens = workload.output_tokens
    return {
        "model": model,
        "prompt": prompt,
        "max_tokens": tokens,
        "min_tokens": tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "cache_salt": salt,
    }


async def timed(client: VllmClient, target: int, asked: dict[str, Any], *, silence: float) -> Request:
    """Send it and time what comes.  A failure is a Request with an `error`, after `silence` seconds at the latest.

    Cancelling the task ends the request in the engine.
    """
    began = time.monotonic()
    reading = _Reading(began)
    error = ""
    try:
        await asyncio.wait_for(_read(client, asked, reading), silence)
        if not reading.finished:
            error = f"The answer from {client.address} stopped half way."
    except asyncio.TimeoutError:
        error = f"{client.address} had not answered whole after {silence:.0f} s."
    except OperatorError as failure:
        error = str(failure)
    return Request(
        target,
        began,
        reading.first,
        tuple(reading.gaps),
        (time.monotonic() if error else reading.last) - began,
        reading.input_tokens or len(asked["prompt"]),
        reading.output_tokens or reading.pieces,
        error,
    )


class _Reading:
    """What has come of an answer so far."""

    def __init__(self, began: float) -> None:
        self.began = self.last = began
        self.first: float | None = None
        self.gaps: list[float] = []
        self.pieces = self.input_tokens = self.output_tokens = 0
        self.finished = False

    def take(self, chunk: dict[str, Any], at: float) -> None:
        choices, usage = chunk.get("choices"), chunk.get("usage")
        if choices:
            # A piece without text is a token too: half of a character, or one that is not shown.
            if self.first is None:
                self.first = at - self.began
            else:
                self.gaps.append(at - self.last)
            self.last, self.pieces = at, self.pieces + 1
            self.finished = self.finished or bool(choices[0].get("finish_reason"))
        if isinstance(usage, dict):
            self.input_tokens = int(usage.get("prompt_tokens") or 0)
            self.output_tokens = int(usage.get("completion_tokens") or 0)


async def _read(client: VllmClient, asked: dict[str, Any], reading: _Reading) -> None:
    async with aclosing(client.stream(PATH, asked)) as events:
        async for data in events:
            at = time.monotonic()
            if data == _END:
                return
            try:
                chunk = json.loads(data)
                if chunk.get("error"):
                    raise stream_error(str(client.address), chunk["error"])
                reading.take(chunk, at)
            except (ValueError, RecursionError, AttributeError, KeyError, TypeError, IndexError):
                raise OperatorError(
                    f"{client.address} sent something in its stream that is no part of an answer."
                ) from None
