"""What a real vLLM (CPU build) says to the chat: without a chat template, too long, by a wrong name or key."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpudeck.services.errors import OperatorError
from gpudeck.services.http.client import VllmClient
from gpudeck.services.http.events import ChatEvent, Done, Message, NoTemplate, TextDelta
from gpudeck.services.http.refusals import ContextTooLongError, UnknownModelError
from gpudeck.services.metrics.reading import read_sample
from gpudeck.services.metrics.types import Counter
from tests.rigs import tiny_model
from tests.rigs.at_the_panel import free_port

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.environ.get("GPUDECK_ENGINE_ENV"), reason="no engine environment: tests/run --all"),
]
KEY = "k-real-4711"
CONTEXT = 2048
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_API_KEY": KEY,
}


@pytest.fixture(scope="module", params=[True, False], ids=["template", "no-template"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, bool]]:
    """The address of a vLLM, and whether its model has a chat template."""
    folder = tmp_path_factory.mktemp("engine")
    model = tiny_model.make(folder / "tiny")
    if not request.param:
        settings = model / "tokenizer_config.json"
        document = json.loads(settings.read_text(encoding="utf-8"))
        del document["chat_template"]
        settings.write_text(json.dumps(document), encoding="utf-8")
    port = free_port()
    vllm = Path(os.environ["GPUDECK_ENGINE_ENV"]) / "bin" / "vllm"
    words = ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", "tiny", "--load-format", "dummy"]
    words += ["--max-model-len", str(CONTEXT), "--enforce-eager"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [vllm, "serve", model, *words], stdout=log, stderr=log, env=os.environ | SETTINGS, start_new_session=True
        )
    try:
        url = f"http://127.0.0.1:{port}"
        asyncio.run(_until_ready(url, process))
        yield url, request.param
    finally:
        process.terminate()
        process.wait(60)


async def _until_ready(url: str, process: "subprocess.Popen[bytes]") -> None:
    async with VllmClient(url, KEY) as client, asyncio.timeout(300):
        while not await client.ready():
            assert process.poll() is None, "the engine ended"
            await asyncio.sleep(0.5)


async def ask(url: str, text: str, model: str | None = None, key: str = KEY, max_tokens: int = 8) -> list[ChatEvent]:
    async with VllmClient(url, key) as client:
        turns = [Message("system", "Be brief."), Message("user", text)]
        return [event async for event in client.chat(model, turns, max_tokens=max_tokens, more={"ignore_eos": True})]


async def test_an_answer_with_its_figures(engine: tuple[str, bool]) -> None:
    url, template = engine
    events = await ask(url, "hello")
    assert isinstance(events[0], NoTemplate) is not template
    done = events[-1]
    assert isinstance(done, Done)
    assert done.finish_reason == "length"
    assert done.usage is not None
    assert done.usage.completion_tokens == 8
    assert any(isinstance(event, TextDelta) for event in events)


async def test_refusals(engine: tuple[str, bool]) -> None:
    url, _ = engine
    with pytest.raises(UnknownModelError, match="it serves tiny"):
        await ask(url, "hello", "other")
    with pytest.raises(OperatorError, match="refused the API key"):
        await ask(url, "hello", key="wrong")
    with pytest.raises(ContextTooLongError) as prompt:
        await ask(url, "hello " * 6_000)
    assert prompt.value.limit == CONTEXT
    with pytest.raises(ContextTooLongError) as answer:
        await ask(url, "hello", max_tokens=CONTEXT + 1)
    assert answer.value.limit == CONTEXT
    # The number that it is said to hold does fit.
    fits = answer.value.fits
    assert fits
    done = (await ask(url, "hello", max_tokens=fits))[-1]
    assert isinstance(done, Done)


async def test_an_answer_that_is_no_longer_wanted_ends_in_the_engine(engine: tuple[str, bool]) -> None:
    url, _ = engine
    wanted, copies = 1900, 32  # many seconds of work, so that it can not be over before it is broken off
    async with VllmClient(url, KEY) as client, asyncio.timeout(60):
        before = read_sample(await client.metrics(), 0.0).counters[Counter.GENERATION_TOKENS]
        stream = client.chat(
            None, [Message("user", "hello")], max_tokens=wanted, more={"ignore_eos": True, "n": copies}
        )
        async for event in stream:
            if isinstance(event, TextDelta):
                break
        await stream.aclose()
        # vLLM counts no outcome for it.  Its figures are as of its last step: another request makes it take some.
        await ask(url, "hello")
        while (sample := read_sample(await client.metrics(), 0.0)).running != 0:
            await asyncio.sleep(0.1)
        assert sample.counters[Counter.GENERATION_TOKENS] - before < wanted * copies
