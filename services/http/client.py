"""vLLM's HTTP surface: readiness, served models, streamed chat.

Read in vLLM 0.6 to 0.33.  httpx is imported on a thread at the first request: the import takes longer than a frame.
"""

import asyncio
import importlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gpudeck.services.errors import OperatorError
from gpudeck.services.http.address import Address
from gpudeck.services.http.answer import Answer
from gpudeck.services.http.events import ChatEvent, Message, NoTemplate, ServedModel
from gpudeck.services.http.refusals import EngineUnreachableError, NoChatTemplateError, UnknownModelError, refusal
from gpudeck.services.http.sse import EventReader, EventTooLongError
from gpudeck.services.text import printable

if TYPE_CHECKING:
    import httpx

_CONNECT_S = 5.0
_ANSWER_S = 10.0  # for the short requests
# A long prompt keeps its first token waiting, and behind others in the queue it waits its turn.
_SILENCE_S = 600.0
_MAX_BODY = 1 << 20  # bytes of an answer that is not streamed
_MAX_METRICS = 1 << 22
# /v1/completions gives 16 tokens where none are named, which is no answer; a model
# without a template often knows no end.
_COMPLETION_TOKENS = 256


class VllmClient:
    """One server, used from one event loop.  Every method raises OperatorError (or a subclass) and nothing else."""

    def __init__(self, base_url: str, api_key: str | None = None) -> None:
        """`base_url` is "http://host:port", with or without "http://" and "/v1"; the key is VLLM_API_KEY's value."""
        self.address = Address.parse(base_url)
        if api_key and not (api_key.isascii() and api_key.isprintable()):
            raise OperatorError("The API key has characters that no HTTP header can carry: use printable ASCII.")
        self._key = api_key or None
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> "VllmClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def health(self) -> bool:
        """Whether /health says 200; False for a server whose engine is dead (503).  Raises EngineUnreachableError."""
        async with self._request("GET", "/health") as response:
            return response.status_code == 200

    async def models(self) -> tuple[str, ...]:
        """The names that the server answers to."""
        return tuple(model.name for model in await self.served())

    async def served(self) -> tuple[ServedModel, ...]:
        """The models that the server answers for."""
        async with self._request("GET", "/v1/models") as response:
            body = await self._body(response)
        try:
            return tuple(_served(model) for model in json.loads(body)["data"])
        except (ValueError, RecursionError, KeyError, TypeError):
            raise OperatorError(f"{self.address} answered /v1/models with something else: is it a vLLM?") from None

    async def metrics(self) -> str:
        """/metrics as it came, for services/metrics to read; it asks for no key."""
        async with self._request("GET", "/metrics") as response:
            return (await self._body(response, _MAX_METRICS)).decode("utf-8", "replace")

    async def version(self) -> str | None:
        """The server's version of vLLM; None where it does not tell."""
        try:
            async with self._request("GET", "/version") as response:
                told = json.loads(await self._body(response))["version"]
        except (OperatorError, ValueError, RecursionError, KeyError, TypeError):
            return None
        return printable(told[:64]) if isinstance(told, str) else None

    async def stream(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[str, None]:
        """The data of each event that a POST is answered with, as it came; for those who measure.

        Closing the iterator ends the request in the engine.
        """
        async with self._request("POST", path, dict(body)) as response:
            if response.status_code != 200:
                raise self._refusal(response, await self._read(response))
            async with aclosing(self._events(response)) as events:
                async for data in events:
                    yield data

    async def ready(self) -> bool:
        """Whether the engine can be asked: /health says 200 and /v1/models answers.  Never raises for a wrong key."""
        try:
            if not await self.health():
                return False
            async with self._request("GET", "/v1/models") as response:
                return response.status_code in (200, 401, 403)
        except EngineUnreachableError:
            return False

    async def wait_until_ready(self, *, every_s: float = 0.5) -> None:
        """Return once `ready`; the caller sets the deadline.

        Until the server listens nothing is logged by the engine, and afterwards this asks no more: the polling leaves
        two lines in its log.
        """
        while not await self.ready():
            await asyncio.sleep(every_s)

    async def chat(
        self,
        model: str | None,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        stop: Sequence[str] = (),
        seed: int | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[ChatEvent, None]:
        """Stream an answer; `model` None or "" takes the first that is served.  The last event is `Done`.

        A model without a chat template is asked by /v1/completions, with the turns as one text; `NoTemplate` says so.
        `more` are further fields of the request, under vLLM's names: response_format, ignore_eos …

        Closing the iterator (`aclose`, or cancelling the task) closes the connection, which ends the request in the
        engine.  Raises ContextTooLongError, UnknownModelError, EngineUnreachableError or plain OperatorError, also
        after events have come: what had come stays valid.
        """
        if not model:
            model = await self._first_model()
        body: dict[str, Any] = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
        options = {"max_tokens": max_tokens, "temperature": temperature, "top_p": top_p, "seed": seed}
        body |= {name: value for name, value in options.items() if value is not None}
        if stop:
            body["stop"] = list(stop)
        body |= more or {}
        turns = [{"role": message.role, "content": message.content} for message in messages]
        try:
            async with aclosing(self._answer("/v1/chat/completions", body | {"messages": turns})) as events:
                async for event in events:
                    yield event
        except NoChatTemplateError:
            yield NoTemplate()
            body = {"max_tokens": _COMPLETION_TOKENS} | body | {"prompt": "\n".join(turn["content"] for turn in turns)}
            async with aclosing(self._answer("/v1/completions", body)) as events:
                async for event in events:
                    yield event

    async def _answer(self, path: str, body: dict[str, Any]) -> AsyncGenerator[ChatEvent, None]:
        answer = Answer(str(self.address), time.monotonic())
        try:
            async with self._request("POST", path, body) as response:
                if response.status_code != 200:
                    raise self._refusal(response, await self._read(response))
                async with aclosing(self._events(response)) as events:
                    async for data in events:
                        for event in answer.read(data, time.monotonic()):
                            yield event
                        if answer.ended:
                            break
            yield answer.done(time.monotonic())
        except UnknownModelError:
            names = ", ".join(printable(name) for name in await self.models()) or "none"
            raise UnknownModelError(
                f"{self.address} serves no model named {printable(body['model'])!r}: it serves {names}."
            ) from None

    async def _first_model(self) -> str:
        names = await self.models()
        if not names:
            raise UnknownModelError(f"{self.address} serves no model.")
        return names[0]

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> AsyncIterator["httpx.Response"]:
        """The response to a request, its body still to be read, with httpx's errors put into words."""
        httpx = await asyncio.to_thread(importlib.import_module, "httpx")
        if self._http is None:
            # A proxy of the environment is for other hosts, and would be asked for this machine's ports too.
            # As many connections as are asked for, and kept: a load opens hundreds, and is not to time their opening.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            self._http = httpx.AsyncClient(trust_env=not self.address.loopback, follow_redirects=False, limits=limits)
        headers = {"Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        silence = _ANSWER_S if body is None else _SILENCE_S
        timeout = httpx.Timeout(_ANSWER_S, connect=_CONNECT_S, read=silence)
        answered = False
        try:
            async with self._http.stream(
                method, f"{self.address.url}{path}", json=body, headers=headers, timeout=timeout
            ) as response:
                answered = True
                yield response
        except httpx.ConnectError as error:
            raise EngineUnreachableError(
                f"Nothing answers at {self.address} ({_reason(error)}): start the engine, or wait until it listens."
            ) from None
        except (httpx.ConnectTimeout, httpx.PoolTimeout):
            raise EngineUnreachableError(
                f"{self.address} took no connection for {_CONNECT_S:.0f} s: is it busy?"
            ) from None
        except httpx.TimeoutException:
            raise EngineUnreachableError(
                f"{self.address} said nothing for {silence:.0f} s: its log may say why."
            ) from None
        except httpx.HTTPError as error:
            if answered:
                raise OperatorError(
                    f"The answer from {self.address} broke off ({_reason(error)}); what had come stays. "
                    "Its log says whether the engine died."
                ) from None
            raise EngineUnreachableError(f"{self.address} hung up ({_reason(error)}): its log may say why.") from None

    async def _body(self, response: "httpx.Response", most: int = _MAX_BODY) -> bytes:
        body = await self._read(response, most)
        if response.status_code != 200:
            raise self._refusal(response, body)
        return body

    async def _read(self, response: "httpx.Response", most: int = _MAX_BODY) -> bytes:
        body = b""
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > most:
                raise OperatorError(f"{self.address} sent more than {most >> 20} MiB for a short answer.")
        return body

    async def _events(self, response: "httpx.Response") -> AsyncGenerator[str, None]:
        reader = EventReader()
        try:
            async for chunk in response.aiter_raw():
                for event in reader.feed(chunk):
                    yield event
            for event in reader.close():
                yield event
        except EventTooLongError:
            raise OperatorError(
                f"{self.address} sent a line without end in its stream, which is no answer; what had come stays."
            ) from None

    def _refusal(self, response: "httpx.Response", body: bytes) -> OperatorError:
        return refusal(str(self.address), response.status_code, body, has_key=self._key is not None)


def _served(model: dict[str, Any]) -> ServedModel:
    length = model.get("max_model_len")
    return ServedModel(str(model["id"]), length if isinstance(length, int) and length > 0 else None)


def _reason(error: Exception) -> str:
    return printable(str(error)) or type(error).__name__
