"""Requests in the simulated engine: judged as vLLM does, then answered a token at a time."""

import threading
import time
from collections.abc import Generator as Pieces
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from gpudeck.services.simulator.answers import answer, prompt_of, structured, tokens
from gpudeck.services.simulator.loads import LoadsFile
from gpudeck.services.simulator.memory import Load
from gpudeck.services.simulator.meter import Meter
from gpudeck.services.simulator.options import Options

_TOKENS_PER_SECOND = 40.0
_PREFILL_S = 0.12
_BUSY_PERCENT = 93


class RequestError(Exception):
    """A request that vLLM refuses, in its words."""

    def __init__(self, status: HTTPStatus, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.document = {"error": {"message": message, "type": kind, "param": param, "code": status.value}}


@dataclass
class Request:
    """One request and, while `pieces` is consumed, what has been generated for it."""

    answer: list[str]
    limit: int  # tokens at most
    prompt_tokens: int
    stream: bool
    include_usage: bool
    chat: bool
    generated: int = 0
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def finish_reason(self) -> str:
        return "length" if len(self.answer) > self.limit else "stop"

    @property
    def usage(self) -> dict[str, int]:
        both = self.prompt_tokens + self.generated
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.generated, "total_tokens": both}


class Generator:
    """Answers up to --max-num-seqs requests at once; the others wait, as in vLLM's queue."""

    def __init__(self, options: Options, load: Load, meter: Meter, loads: LoadsFile, speed: float) -> None:
        self._options = options
        self._load = load
        self._meter = meter
        self._loads = loads
        self._speed = speed
        self._places = threading.Semaphore(options.max_num_seqs)

    def accept(self, body: dict[str, Any], *, chat: bool) -> Request:
        """Raises RequestError for what vLLM would refuse."""
        if body.get("model") not in (None, "", self._options.served_name):
            raise RequestError(
                HTTPStatus.NOT_FOUND, "NotFoundError", f"The model `{body['model']}` does not exist.", "model"
            )
        if chat:
            whole, asked = prompt_of(body.get("messages"))
            if not whole:
                raise RequestError(HTTPStatus.BAD_REQUEST, "BadRequestError", "messages: Field required", "messages")
        else:
            prompt = body.get("prompt")
            whole = asked = prompt if isinstance(prompt, str) else " ".join(map(str, prompt or ()))
        length, prompt_tokens = self._load.max_model_len, max(len(tokens(whole)), 1)
        wanted = body.get("max_completion_tokens") or body.get("max_tokens")
        if wanted is not None and (not isinstance(wanted, int) or wanted < 1):
            raise RequestError(
                HTTPStatus.BAD_REQUEST, "BadRequestError", f"max_tokens must be at least 1, got {wanted}.", "max_tokens"
            )
        if prompt_tokens >= length:
            raise RequestError(
                HTTPStatus.BAD_REQUEST,
                "BadRequestError",
                f"You passed {prompt_tokens} input tokens and requested {wanted or 1} output tokens. However, the "
                f"model's context length is only {length} tokens, resulting in a maximum input length of "
                f"{length - (wanted or 1)} tokens. Please reduce the length of the input prompt.",
                "input_tokens",
            )
        if wanted is not None and prompt_tokens + wanted > length:
            raise RequestError(
                HTTPStatus.BAD_REQUEST,
                "BadRequestError",
                f"'max_tokens' or 'max_completion_tokens' is too large: {wanted}. This model's maximum context length "
                f"is {length} tokens and your request has {prompt_tokens} input tokens ({wanted} > {length} - "
                f"{prompt_tokens}).",
                "max_tokens",
            )
        options = body.get("stream_options")
        return Request(
            answer=tokens(structured(body.get("response_format")) or answer(asked, self._options, self._load)),
            limit=wanted or length - prompt_tokens,
            prompt_tokens=prompt_tokens,
            stream=bool(body.get("stream")),
            include_usage=isinstance(options, dict) and bool(options.get("include_usage")),
            chat=chat,
        )

    def pieces(self, request: Request) -> Pieces[str, None, None]:
        """The answer, piece by piece at the pace of a real engine.  Closing it early is an aborted request."""
        began = time.monotonic()
        meter, ended = self._meter, "abort"
        meter.move(waiting=1)
        with self._places:
            meter.move(waiting=-1, running=1, held=request.prompt_tokens)
            self._loads.show(utilization=_BUSY_PERCENT)
            meter.observe("request_queue_time_seconds", time.monotonic() - began)
            try:
                time.sleep(_PREFILL_S / self._speed)
                meter.count(prompt=request.prompt_tokens)
                before = began
                for piece in request.answer[: request.limit]:
                    now = time.monotonic()
                    meter.observe(
                        "inter_token_latency_seconds" if request.generated else "time_to_first_token_seconds",
                        now - before,
                    )
                    before = now
                    request.generated += 1
                    meter.count(generated=1)
                    meter.move(held=1)
                    yield piece
                    time.sleep(1 / _TOKENS_PER_SECOND / self._speed)
                ended = request.finish_reason
            finally:
                seconds = time.monotonic() - began
                meter.count(ended=ended)
                meter.observe("e2e_request_latency_seconds", seconds)
                if request.generated:
                    meter.observe("request_time_per_output_token_seconds", seconds / request.generated)
                meter.move(running=-1, held=-request.prompt_tokens - request.generated)
                if not meter.running:
                    self._loads.show(utilization=0)
