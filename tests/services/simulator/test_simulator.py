"""The simulated engine as a process: its log is read by the phase tracker, its server by gpudeck's own client."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpudeck.services.box.loads import read_loads
from gpudeck.services.engine.phases import Phase, PhaseTracker
from gpudeck.services.engine.processes import descendants
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.client import VllmClient
from gpudeck.services.http.events import Done, Message, TextDelta
from gpudeck.services.http.refusals import ContextTooLongError, UnknownModelError
from tests.services.simulator.conftest import Engines

HELLO = [Message("user", "What is pipeline parallelism?")]


def tracked(log: str) -> PhaseTracker:
    tracker = PhaseTracker()
    for line in log.split("\n"):
        tracker.feed(line)
    return tracker


def loads(engines: Engines) -> dict[str, Any]:
    (path,) = engines.loads.glob("*.json")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_it_starts_in_vllms_phases_and_says_what_it_is(engines: Engines) -> None:
    engine = engines.ready("-tp", "2", "-pp", "2", CUDA_VISIBLE_DEVICES="2,0,3,1")
    assert "SIMULATED" in engine.log.splitlines()[0]
    standing = tracked(engine.log).standing
    assert [phase for phase, _ in standing.entered] == [
        Phase.INITIALISING,
        Phase.LOADING,
        Phase.PROFILING,
        Phase.COMPILING,
        Phase.CAPTURING,
        Phase.LISTENING,
    ]
    assert standing.server == engine.url
    assert standing.kv_cache_tokens is not None
    for name in ("EngineCore", "Worker_PP0_TP0", "Worker_PP1_TP1"):
        assert f"({name} pid=" in engine.log
    assert len(descendants(engine.process.pid)) == 5


def test_cards_come_from_cuda_visible_devices_in_rank_order(engines: Engines) -> None:
    engine = engines.ready("-tp", "2", "-pp", "2", "--served-model-name", "demo", CUDA_VISIBLE_DEVICES="2,0,3,1")
    document = loads(engines)
    assert (document["pid"], document["engine"], document["utilization"]) == (engine.process.pid, "demo", 0)
    assert [(g["gpu"], g["pp_rank"], g["tp_rank"]) for g in document["gpus"]] == [
        (2, 0, 0),
        (0, 0, 1),
        (3, 1, 0),
        (1, 1, 1),
    ]
    assert document["gpus"][3]["process"] == "VLLM::Worker_PP1_TP1"
    read = read_loads(engines.loads)
    assert [(load.gpu, load.process.engine, load.process.pid) for load in read] == [
        (gpu, "demo", engine.process.pid) for gpu in (2, 0, 3, 1)
    ]
    assert all(g["memory_bytes"] > 1 << 30 for g in document["gpus"])


def test_memory_grows_while_it_loads(engines: Engines, until: Callable[[Callable[[], bool]], None]) -> None:
    engine = engines.start(GPUDECK_SIMULATOR_SPEED="4")
    until(lambda: bool(list(engines.loads.glob("*.json"))))
    early = loads(engines)["gpus"][0]["memory_bytes"]
    engine.until("Application startup complete.")
    assert loads(engines)["gpus"][0]["memory_bytes"] > early > 0


def test_sigterm_ends_it_with_all_its_processes(engines: Engines) -> None:
    engine = engines.ready("-tp", "2", CUDA_VISIBLE_DEVICES="0,1")
    workers = descendants(engine.process.pid)
    assert engine.terminate() == 0
    assert not any(worker.alive for worker in workers)
    assert tracked(engine.log).standing.phase is Phase.STOPPING
    assert list(engines.loads.iterdir()) == []


def test_sigterm_while_it_starts(engines: Engines) -> None:
    engine = engines.start(GPUDECK_SIMULATOR_SPEED="0.1")
    engine.until("Resolved architecture")
    assert engine.terminate() == 143
    assert list(engines.loads.iterdir()) == []


def test_killed_it_leaves_no_worker(engines: Engines, until: Callable[[Callable[[], bool]], None]) -> None:
    engine = engines.ready("-tp", "2", CUDA_VISIBLE_DEVICES="0,1")
    workers = descendants(engine.process.pid)
    engine.process.kill()
    engine.process.wait()
    until(lambda: not any(worker.alive for worker in workers))


@pytest.mark.parametrize(
    ("words", "environment", "status", "decisive"),
    [
        (
            ("-tp", "3"),
            {"CUDA_VISIBLE_DEVICES": "0,1"},
            1,
            "World size (3) is larger than the number of available GPUs (2)",
        ),
        (("--no-such-flag", "1"), {}, 2, "vllm serve: error: unrecognized arguments: --no-such-flag 1"),
        (("--dtype", "bf17"), {}, 2, "vllm serve: error: argument --dtype: invalid choice"),
        (
            ("-pp", "2"),
            {"CUDA_VISIBLE_DEVICES": "0,1", "VLLM_PP_LAYER_PARTITION": "3,4"},
            1,
            "ValueError: sum(partitions)=7 does not match num_hidden_layers=32.",
        ),
        ((), {"GPUDECK_SIMULATED_CARDS": "17179869184"}, 1, "ValueError: No available memory for the cache blocks."),
    ],
)
def test_what_vllm_refuses(
    engines: Engines, words: tuple[str, ...], environment: dict[str, str], status: int, decisive: str
) -> None:
    engine = engines.start(*words, **environment)
    assert engine.process.wait(20) == status
    standing = tracked(engine.log).standing
    assert standing.phase is Phase.FAILED
    assert (standing.decisive_line or "").startswith(decisive)


def test_a_port_in_use(engines: Engines) -> None:
    first = engines.ready()
    second = engines.start(port=str(first.port))
    assert second.process.wait(20) == 1
    assert tracked(second.log).standing.decisive_line == "OSError: [Errno 98] Address already in use"


def test_a_context_that_does_not_fit(engines: Engines, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"max_position_embeddings": 1 << 20, "num_key_value_heads": 8}))
    engine = engines.start(model=str(model))
    assert engine.process.wait(20) == 1
    assert "the estimated maximum model length is" in (tracked(engine.log).standing.decisive_line or "")


def test_a_model_directory_that_is_not_there(engines: Engines) -> None:
    engine = engines.start(model="/no/such/model")
    assert engine.process.wait(20) == 1
    assert "Repo id must be in the form" in (tracked(engine.log).standing.decisive_line or "")


async def test_gpudecks_client_talks_to_it(engines: Engines) -> None:
    engine = engines.ready("--served-model-name", "demo", VLLM_API_KEY="secret")
    async with VllmClient(engine.url, "secret") as client:
        await asyncio.wait_for(client.wait_until_ready(), 10)
        assert await client.models() == ("demo",)
        *events, done = [event async for event in client.chat(None, HELLO)]
        text = "".join(event.text for event in events if isinstance(event, TextDelta))
        assert "simulated engine" in text
        assert "What is pipeline parallelism?" in text
        assert isinstance(done, Done)
        assert done.usage is not None
        assert done.usage.completion_tokens == sum(isinstance(event, TextDelta) for event in events)
        assert (done.finish_reason, done.ttft is not None) == ("stop", True)
        done = [event async for event in client.chat("demo", HELLO, max_tokens=3)][-1]
        assert isinstance(done, Done)
        assert (done.finish_reason, done.usage and done.usage.completion_tokens) == ("length", 3)
    async with VllmClient(engine.url) as client:
        assert await client.ready()
        with pytest.raises(OperatorError, match="wants an API key"):
            await client.models()


async def test_refusals(engines: Engines) -> None:
    engine = engines.ready("--served-model-name", "demo", "--max-model-len", "64")
    async with VllmClient(engine.url) as client:
        with pytest.raises(UnknownModelError, match="it serves demo"):
            await anext(client.chat("other", HELLO))
        with pytest.raises(ContextTooLongError) as caught:
            await anext(client.chat("demo", HELLO, max_tokens=4000))
        assert caught.value.limit == 64
        assert caught.value.fits is not None
        assert [event async for event in client.chat("demo", HELLO, max_tokens=caught.value.fits)]
        with pytest.raises(ContextTooLongError, match="The prompt does not fit"):
            await anext(client.chat("demo", [Message("user", "word " * 100)]))


async def test_cancelling_frees_its_place_and_the_cards(
    engines: Engines, until: Callable[[Callable[[], bool]], None]
) -> None:
    engine = engines.ready(GPUDECK_SIMULATOR_SPEED="10")
    async with VllmClient(engine.url) as client:
        chat = client.chat(None, HELLO)
        await anext(chat)
        assert loads(engines)["utilization"] > 80
        await chat.aclose()
    until(lambda: loads(engines)["utilization"] == 0)


async def test_metrics_have_vllms_names(engines: Engines) -> None:
    import httpx

    engine = engines.ready("--served-model-name", "demo", VLLM_API_KEY="secret")
    async with VllmClient(engine.url, "secret") as client:
        (*_, done) = [event async for event in client.chat(None, HELLO, max_tokens=5)]
    assert isinstance(done, Done)
    async with httpx.AsyncClient(trust_env=False) as http:
        text = (await http.get(f"{engine.url}/metrics")).text
    real = (Path(__file__).parents[2] / "data" / "metrics-vllm-0.24.txt").read_text()
    names = {line.split("{")[0] for line in text.splitlines() if not line.startswith("#")}
    assert names <= {line.split("{")[0] for line in real.splitlines()}
    assert 'vllm:generation_tokens_total{engine="0",model_name="demo"} 5.0' in text
    assert 'vllm:request_success_total{finished_reason="length",engine="0",model_name="demo"} 1.0' in text


async def test_not_streamed_and_completions(engines: Engines) -> None:
    import httpx

    engine = engines.ready("--served-model-name", "demo")
    async with httpx.AsyncClient(trust_env=False, base_url=engine.url) as http:
        body = {"model": "demo", "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]}
        answer = (await http.post("/v1/chat/completions", json=body)).json()
        assert "> hello" in answer["choices"][0]["message"]["content"]
        assert answer["usage"]["total_tokens"] > answer["usage"]["completion_tokens"] > 0
        answer = (await http.post("/v1/completions", json={"prompt": "Once", "max_tokens": 2})).json()
        assert (answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]) == ("Hello! I", "length")
        assert (await http.post("/v1/chat/completions", content=b"nonsense")).status_code == 400
        assert (await http.get("/version")).json()["version"].endswith("simulated")
        (model,) = (await http.get("/v1/models")).json()["data"]
        assert model["owned_by"] == "gpudeck-simulated"
        assert (await http.get("/no/such")).status_code == 404
