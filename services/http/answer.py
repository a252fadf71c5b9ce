"""A streamed answer put together from the data of its events."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from gpudeck.services.errors import OperatorError
from gpudeck.services.http.events import ChatEvent, Done, ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta, Usage
from gpudeck.services.http.refusals import stream_error

_END = "[DONE]"


class Answer:
    """Reads the events of one stream of /v1/chat/completions or /v1/completions.

    Times are of the caller's clock, in seconds.
    """

    def __init__(self, where: str, sent_at: float) -> None:
        self.ended = False  # the server said that nothing follows
        self._where = where
        self._sent_at = sent_at
        self._first_at: float | None = None
        self._finish: str | None = None
        self._usage: Usage | None = None

    def read(self, data: str, at: float) -> Iterator[ChatEvent]:
        """What one event brings.  Raises OperatorError for an error object and for what is no part of an answer."""
        if data == _END:
            self.ended = True
            return
        chunk = self._chunk(data)
        if chunk.get("error"):
            raise stream_error(self._where, chunk["error"])
        for choice in self._list(chunk.get("choices")):
            delta = choice.get("delta")
            if isinstance(delta, dict):
                yield from self._deltas(delta, at)
            else:  # of /v1/completions
                yield from self._pieces(((TextDelta, choice.get("text")),), at)
            if isinstance(choice.get("finish_reason"), str):
                self._finish = choice["finish_reason"]
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self._usage = Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))
            yield self._usage

    def done(self, at: float) -> Done:
        """The end.  Raises OperatorError where the stream stopped before the answer was whole."""
        if not self.ended and self._finish is None:
            raise OperatorError(
                f"The answer from {self._where} stopped half way; what had come stays. "
                "The engine may have died: its log says why."
            )
        ttft = None if self._first_at is None else self._first_at - self._sent_at
        return Done(self._finish, at - self._sent_at, ttft, self._usage)

    def _deltas(self, delta: dict[str, Any], at: float) -> Iterator[ChatEvent]:
        # vLLM before 0.12 called it reasoning_content; some versions send both.
        reasoning = delta.get("reasoning") or delta.get("reasoning_content")
        text = delta.get("content")
        yield from self._pieces(
            ((ReasoningDelta, reasoning), (TextDelta, text), (RefusalDelta, delta.get("refusal"))), at
        )
        for call in self._list(delta.get("tool_calls")):
            function = call.get("function")
            if isinstance(function, dict):
                self._first_at = self._first_at or at
                yield ToolCallDelta(
                    _count(call.get("index")), _text(function.get("name")), _text(function.get("arguments"))
                )

    def _pieces(
        self, pieces: Iterable[tuple[type[TextDelta | ReasoningDelta | RefusalDelta], object]], at: float
    ) -> Iterator[ChatEvent]:
        for kind, piece in pieces:
            if isinstance(piece, str) and piece:
                self._first_at = self._first_at or at
                yield kind(piece)

    def _chunk(self, data: str) -> dict[str, Any]:
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            chunk = None
        if not isinstance(chunk, dict):
            raise OperatorError(
                f"{self._where} sent something in its stream that is no part of an answer; what had come stays."
            )
        return chunk

    @staticmethod
    def _list(value: object) -> list[dict[str, Any]]:
        return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
