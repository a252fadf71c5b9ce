"""The client against a server with a script, over real sockets."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gpudeck.services.errors import OperatorError
from gpudeck.services.http.client import VllmClient
from gpudeck.services.http.events import (
    ChatEvent,
    Done,
    Message,
    NoTemplate,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from gpudeck.services.http.refusals import ContextTooLongError, EngineUnreachableError, UnknownModelError
from tests.services.http.stub import Stub, answer, chunk, serving, stream

CHAT = "/v1/chat/completions"
MODELS = '{"object":"list","data":[{"id":"tiny","object":"model"},{"id":"alias","object":"model"}]}'
HELLO = [Message("user", "hello")]


@pytest_asyncio.fixture
async def stub() -> AsyncIterator[Stub]:
    async with serving() as stub:
        stub.replies["/v1/models"] = answer(200, MODELS)
        stub.replies["/health"] = answer(200, "")
        yield stub


def delta(**fields: object) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": fields, "finish_reason": None}]})


def finish(reason: str = "stop") -> str:
    return json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})


USAGE = json.dumps({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}})


async def ask(stub: Stub, **options: object) -> list[ChatEvent]:
    async with VllmClient(stub.url) as client:
        return [event async for event in client.chat("tiny", HELLO, **options)]  # type: ignore[arg-type]


async def failing(stub: Stub, api_key: str | None = None) -> tuple[list[ChatEvent], OperatorError]:
    """What came before the error, and the error."""
    events = []
    async with VllmClient(stub.url, api_key) as client:
        try:
            async for event in client.chat("tiny", HELLO):
                events.append(event)
        except OperatorError as error:
            return events, error
    pytest.fail("the answer came whole")


async def test_an_answer_is_streamed(stub: Stub) -> None:
    stub.replies[CHAT] = stream(
        delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), finish(), USAGE, "[DONE]"
    )
    *events, done = await ask(stub, max_tokens=5, temperature=0.0, stop=["x"])
    assert events == [TextDelta("Hel"), TextDelta("lo"), Usage(7, 3)]
    assert isinstance(done, Done)
    assert (done.finish_reason, done.usage) == ("stop", Usage(7, 3))
    assert done.ttft is not None
    assert 0 < done.ttft <= done.seconds
    body = json.loads(stub.requests[-1][2])
    assert (body["model"], body["max_tokens"], body["temperature"], body["stop"]) == ("tiny", 5, 0.0, ["x"])
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert "top_p" not in body


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
async def test_reasoning_of_newer_and_older_versions(stub: Stub, name: str) -> None:
    stub.replies[CHAT] = stream(delta(**{name: "hm"}), delta(content="yes"), finish(), "[DONE]")
    assert (await ask(stub))[:2] == [ReasoningDelta("hm"), TextDelta("yes")]


async def test_without_a_model_the_first_one_answers(stub: Stub) -> None:
    stub.replies[CHAT] = stream(finish(), "[DONE]")
    async with VllmClient(stub.url) as client:
        events = [event async for event in client.chat(None, HELLO)]
    assert json.loads(stub.requests[-1][2])["model"] == "tiny"
    assert events == [Done("stop", events[0].seconds, None, None)]  # type: ignore[union-attr]


async def test_the_key_goes_into_the_header(stub: Stub) -> None:
    async with VllmClient(stub.url, "secret") as client:
        assert await client.models() == ("tiny", "alias")
    assert stub.requests[-1][1]["authorization"] == "Bearer secret"


async def test_closing_the_iterator_ends_the_request(stub: Stub) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(stream(end=""))
        while True:
            writer.write(chunk(f"data: {delta(content='more ')}\n\n".encode()))
            await writer.drain()
            await asyncio.sleep(0.01)

    stub.replies[CHAT] = endless
    async with VllmClient(stub.url) as client:
        chat = client.chat("tiny", HELLO)
        assert await anext(chat) == TextDelta("more ")
        assert not stub.hung_up.is_set()
        await chat.aclose()
        await asyncio.wait_for(stub.hung_up.wait(), 5)


async def test_cancelling_the_task_ends_the_request(stub: Stub) -> None:
    answering = asyncio.Event()

    async def silent(writer: asyncio.StreamWriter) -> None:
        writer.write(stream(end=""))
        answering.set()
        await asyncio.Event().wait()

    stub.replies[CHAT] = silent
    task = asyncio.create_task(ask(stub))
    await asyncio.wait_for(answering.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(stub.hung_up.wait(), 5)


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (401, '{"error":"Unauthorized"}', "wants an API key (401)"),
        (500, '{"error":{"message":"EngineCore encountered an issue. See stack trace","code":500}}', "has died (500)"),
        (500, "", "failed (500): it gave no reason"),
        (503, '{"error":{"message":"overloaded","code":503}}', "failed (503): overloaded"),
        (400, '{"object":"error","message":"bad\\u001b[2J thing","code":400}', "refused the request (400): bad^[[2J"),
    ],
)
async def test_refusals_in_words(stub: Stub, status: int, body: str, sentence: str) -> None:
    stub.replies[CHAT] = answer(status, body)
    _, error = await failing(stub)
    assert sentence in str(error)
    assert "\x1b" not in str(error)


NO_TEMPLATE = answer(400, '{"error":{"message":"you must provide a chat template if the tokenizer does not"}}')


def text(piece: str, reason: str | None = None) -> str:
    return json.dumps({"choices": [{"index": 0, "text": piece, "finish_reason": reason}]})


async def test_a_model_without_a_chat_template_completes_text_and_says_so(stub: Stub) -> None:
    stub.replies[CHAT] = NO_TEMPLATE
    stub.replies["/v1/completions"] = stream(text("Hel"), text("lo", "length"), USAGE, "[DONE]")
    async with VllmClient(stub.url) as client:
        turns = [Message("system", "Be brief."), *HELLO]
        *events, done = [event async for event in client.chat("tiny", turns, temperature=0.5, stop=["x"])]
    assert events == [NoTemplate(), TextDelta("Hel"), TextDelta("lo"), Usage(7, 3)]
    assert isinstance(done, Done)
    assert done.finish_reason == "length"
    body = json.loads(stub.requests[-1][2])
    assert (body["prompt"], body["temperature"], body["stop"]) == ("Be brief.\nhello", 0.5, ["x"])
    assert body["max_tokens"] > 16  # what vLLM takes where none is named
    assert "messages" not in body


async def test_a_completion_that_is_refused_is_told_as_such(stub: Stub) -> None:
    stub.replies[CHAT] = NO_TEMPLATE
    stub.replies["/v1/completions"] = answer(400, '{"error":{"message":"no generation here"}}')
    events, error = await failing(stub)
    assert events == [NoTemplate()]
    assert "no generation here" in str(error)


async def test_tool_calls_come_in_pieces(stub: Stub) -> None:
    calls: list[dict[str, object]] = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "weather", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"city":'}},
        {"index": 1, "function": {"name": "time", "arguments": None}},
        {"index": 0, "function": None},
    ]
    stub.replies[CHAT] = stream(*(delta(tool_calls=[call]) for call in calls), finish("tool_calls"), "[DONE]")
    *events, done = await ask(stub)
    assert events == [ToolCallDelta(0, "weather", ""), ToolCallDelta(0, "", '{"city":'), ToolCallDelta(1, "time", "")]
    assert isinstance(done, Done)
    assert (done.finish_reason, done.ttft is None) == ("tool_calls", False)


async def test_the_models_own_refusal_is_told_apart(stub: Stub) -> None:
    stub.replies[CHAT] = stream(delta(refusal="I can not."), finish(), "[DONE]")
    assert (await ask(stub))[0] == RefusalDelta("I can not.")


async def test_a_wrong_key(stub: Stub) -> None:
    stub.replies[CHAT] = answer(401, '{"error":"Unauthorized"}')
    _, error = await failing(stub, "wrong")
    assert "refused the API key" in str(error)
    assert "wrong" not in str(error)


@pytest.mark.parametrize(
    ("message", "fits"),
    [
        (
            "This model's maximum context length is 1024 tokens. However, you requested 2030 tokens "
            "(30 in the messages, 2000 in the completion). Please reduce the length of the messages or completion.",
            994,
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 1024 "
            "tokens and your request has 17 input tokens (2000 > 1024 - 17). (parameter=max_tokens, value=2000)",
            1007,
        ),
        (
            "You passed 2000 input tokens and requested 16 output tokens. However, the model's context length is only "
            "1024 tokens, resulting in a maximum input length of 1008 tokens. Please reduce the length of the input.",
            None,
        ),
        ("This model's maximum context length is 1024 tokens. However, your request has 2000 input tokens.", 0),
        (
            "max_tokens=2000 cannot be greater than max_model_len=1024. Please request fewer output tokens. "
            "(parameter=max_tokens, value=2000)",
            1024,
        ),
        (
            "This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input "
            "tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input "
            "prompt. (parameter=input_tokens, value=1025)",
            0,
        ),
        (
            "This model's maximum context length is 1024 tokens. However, your prompt contains 30000 characters (more "
            "than 10240 characters, which is the upper bound for 1024 input tokens). Please reduce the length of the "
            "input prompt. (parameter=input_text, value=30000)",
            0,
        ),
    ],
)
async def test_context_length(stub: Stub, message: str, fits: int | None) -> None:
    stub.replies[CHAT] = answer(400, json.dumps({"error": {"message": message, "code": 400}}))
    _, error = await failing(stub)
    assert isinstance(error, ContextTooLongError)
    assert (error.limit, error.fits) == (1024, fits)
    assert "1,024" in str(error)


async def test_a_wrong_model_name_is_told_with_the_served_ones(stub: Stub) -> None:
    stub.replies[CHAT] = answer(404, '{"error":{"message":"The model `tinny` does not exist.","code":404}}')
    _, error = await failing(stub)
    assert isinstance(error, UnknownModelError)
    assert "it serves tiny, alias" in str(error)


async def test_an_error_object_inside_the_stream(stub: Stub) -> None:
    stub.replies[CHAT] = stream(
        delta(content="half"),
        '{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause."}}',
        "[DONE]",
    )
    events, error = await failing(stub)
    assert events == [TextDelta("half")]
    assert "died while it answered" in str(error)


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (stream(delta(content="half"), end=""), "broke off"),  # the connection is cut within the body
        (stream(delta(content="half")), "stopped half way"),  # the body ends, the answer does not
        (stream(delta(content="half"), '{"choices": [{"del'), "no part of an answer"),
        (stream(delta(content="half"), "x" * (3 << 20)), "a line without end"),
    ],
)
async def test_a_broken_stream_keeps_what_had_come(stub: Stub, reply: bytes, sentence: str) -> None:
    stub.replies[CHAT] = reply
    events, error = await failing(stub)
    assert events == [TextDelta("half")]
    assert sentence in str(error)
    assert "what had come stays" in str(error)


async def test_events_cut_anywhere_and_with_carriage_returns(stub: Stub) -> None:
    text = f"data: {delta(content='grüß')}\r\n\r\n: comment\r\n\r\ndata: {finish()}\r\n\r\ndata: [DONE]".encode()
    head = stream(end="")
    stub.replies[CHAT] = head + b"".join(chunk(text[i : i + 1]) for i in range(len(text))) + b"0\r\n\r\n"
    assert (await ask(stub))[0] == TextDelta("grüß")


async def test_nothing_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        async with VllmClient(url) as client:
            with pytest.raises(EngineUnreachableError, match="Nothing answers at"):
                await client.health()
            assert not await client.ready()


async def test_a_server_that_is_no_vllm(stub: Stub) -> None:
    stub.replies["/v1/models"] = answer(200, "<html>", "text/html")
    async with VllmClient(stub.url) as client:
        with pytest.raises(OperatorError, match="is it a vLLM"):
            await client.models()


async def test_ready_is_health_and_models(stub: Stub) -> None:
    async with VllmClient(stub.url) as client:
        stub.replies["/health"] = answer(503, "")
        assert not await client.ready()
        stub.replies["/health"] = answer(200, "")
        stub.replies["/v1/models"] = answer(500, "")
        assert not await client.ready()
        waiting = asyncio.create_task(client.wait_until_ready(every_s=0.01))
        stub.replies["/v1/models"] = answer(401, "")  # a key is wanted, and the engine is up
        await asyncio.wait_for(waiting, 5)


def test_a_key_that_no_header_carries() -> None:
    with pytest.raises(OperatorError, match="API key"):
        VllmClient("http://localhost:1", "new\nline")


async def test_a_proxy_is_not_asked_for_this_machine(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with VllmClient(stub.url) as client:
        assert await client.health()


async def test_metrics_come_as_they_are(stub: Stub) -> None:
    stub.replies["/metrics"] = answer(200, "vllm:num_requests_running 1.0\n", "text/plain")
    async with VllmClient(stub.url) as client:
        assert await client.metrics() == "vllm:num_requests_running 1.0\n"


async def test_endless_metrics_are_refused(stub: Stub) -> None:
    stub.replies["/metrics"] = answer(200, "x" * ((4 << 20) + 1), "text/plain")
    async with VllmClient(stub.url) as client:
        with pytest.raises(OperatorError, match="more than 4 MiB"):
            await client.metrics()
