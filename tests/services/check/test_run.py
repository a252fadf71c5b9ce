"""A check against servers that fail in each way, and against the simulated engine."""

import asyncio
import json

import pytest

from gpudeck.services.check.curl import curl_line
from gpudeck.services.check.run import Check, Local
from gpudeck.services.check.types import Item, Outcome
from gpudeck.services.http.client import VllmClient
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from tests.services.http.stub import answer, serving, stream
from tests.services.simulator.conftest import Engines

MODELS = answer(200, json.dumps({"data": [{"id": "tiny", "max_model_len": 2048}]}))
CHAT = "/v1/chat/completions"


async def checked(url: str, local: Local | None = None) -> dict[str, Item]:
    async with VllmClient(url) as client:
        return {item.id: item async for item in Check(client, local).items()}


def piece(text: str, finish: str | None = None) -> str:
    return json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": finish}]})


USAGE = json.dumps({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})


async def test_the_simulated_engine_passes(engines: Engines) -> None:
    engine = engines.ready("--served-model-name", "demo")
    items = await checked(engine.url)
    assert [item for item in items.values() if item.outcome is Outcome.FAILED] == []
    assert set(items) == {
        "models", "prompt-short", "prompt-long", "prompt-json", "prompt-chinese", "stream", "usage",
    }  # fmt: skip
    assert items["prompt-json"].outcome is Outcome.PASSED


async def test_nothing_listens() -> None:
    items = await checked("http://127.0.0.1:1")
    assert list(items) == ["models"]
    assert items["models"].outcome is Outcome.FAILED
    assert "Nothing answers" in items["models"].words


async def test_a_server_without_models() -> None:
    async with serving() as stub:
        stub.replies["/v1/models"] = answer(200, '{"data": []}')
        items = await checked(stub.url)
    assert items["models"].outcome is Outcome.FAILED
    assert list(items) == ["models"]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (answer(500, '{"error": {"message": "boom"}}'), "failed (500): boom"),
        (stream(piece("half"), end=""), "broke off"),
        (stream(piece("half"), '{"error": {"message": "EngineDead"}}'), "died while it answered"),
        (stream(json.dumps({"choices": []}), "[DONE]"), "an empty answer"),
    ],
)
async def test_prompts_that_fail_are_lines_of_the_list(reply: bytes, words: str) -> None:
    async with serving() as stub:
        stub.replies |= {"/v1/models": MODELS, CHAT: reply}
        items = await checked(stub.url)
    assert items["prompt-short"].outcome is Outcome.FAILED
    assert words in items["prompt-short"].words


async def test_answers_in_one_piece_and_without_usage() -> None:
    async with serving() as stub:
        stub.replies |= {"/v1/models": MODELS, CHAT: stream(piece("all at once", "stop"), "[DONE]")}
        items = await checked(stub.url)
    assert items["stream"].outcome is Outcome.FAILED
    assert items["usage"].outcome is Outcome.FAILED
    assert "0 of 4" in items["usage"].words


async def test_the_long_prompt_is_halved_until_it_fits() -> None:
    sizes = []

    async with serving() as stub:

        async def reply(writer: asyncio.StreamWriter) -> None:
            size = len(stub.requests[-1][2])
            sizes.append(size)
            writer.write(
                stream(piece("7481"), piece("", "stop"), USAGE, "[DONE]")
                if size < 3000
                else answer(400, '{"error": {"message": "This model\'s maximum context length is 2048 tokens."}}')
            )
            await writer.drain()
            writer.close()

        stub.replies |= {"/v1/models": MODELS, CHAT: reply}
        items = await checked(stub.url)
    assert items["prompt-long"].outcome is Outcome.PASSED
    assert max(sizes) >= 3000


async def test_another_served_name_than_the_spec_gives() -> None:
    local = Local(
        EngineSpec("x", "/m", Placement(((0,),)), EngineOptions(served_model_name="other")),
        log=lambda: ["INFO 12-01 02:07:08 [a.py:1] fine"],
        trouble="no driver answers here",
    )
    async with serving() as stub:
        stub.replies |= {"/v1/models": MODELS, CHAT: stream(piece("a"), piece("b", "stop"), USAGE, "[DONE]")}
        items = await checked(stub.url, local)
    assert "tiny and not other" in items["models"].words
    assert (items["cards-busy"].outcome, items["cards-busy"].words) == (Outcome.SKIPPED, "no driver answers here")
    assert items["log"].outcome is Outcome.PASSED


def test_the_curl_line_quotes_what_is_foreign_and_names_the_key() -> None:
    line = curl_line("http://127.0.0.1:8000", "a'b; rm -rf $HOME")
    assert '"Authorization: Bearer $VLLM_API_KEY"' in line
    assert "'\"'\"'b; rm" in line
    assert line.startswith("curl -sS http://127.0.0.1:8000/v1/chat/completions ")
