"""The embedded runner with a real vLLM (CPU build): its phases, its answer, its end with all its processes."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from gpudeck.services.engine.embedded import EmbeddedRunner
from gpudeck.services.engine.enginedir import EngineDirectory
from gpudeck.services.engine.phases import Phase, PhaseTracker
from gpudeck.services.engine.processes import descendants
from gpudeck.services.engine.program import free_port
from gpudeck.services.engine.types import LogLine
from gpudeck.services.http.client import VllmClient
from gpudeck.services.http.events import Done, Message
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from tests.rigs import tiny_model

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        "GPUDECK_ENGINE_ENV" not in os.environ, reason="no engine environment: tests/run --all names one"
    ),
]


async def test_a_real_vllm_from_start_to_stop(tmp_path: Path) -> None:
    runner = EmbeddedRunner(home=tmp_path / "engines")
    port = free_port(18000)
    spec = EngineSpec(
        "tiny",
        str(tiny_model.make(tmp_path / "tiny")),
        Placement(((0, 1),)),
        EngineOptions(port=port, served_model_name="tiny", max_model_len=1024, load_format="dummy", enforce_eager=True),
        program=(f"{os.environ['GPUDECK_ENGINE_ENV']}/bin/vllm",),
        environment=(
            ("HF_HUB_OFFLINE", "1"),
            ("VLLM_CPU_KVCACHE_SPACE", "1"),
            ("VLLM_CPU_OMP_THREADS_BIND", "0|1"),
        ),
    )
    tracker = PhaseTracker()

    def deliver(lines: list[LogLine]) -> None:
        for line in lines:
            tracker.feed(line.text, line.at)

    runner.install(spec)
    await asyncio.to_thread(runner.start, "tiny")
    follower = runner.follow("tiny", deliver)
    follower.start()
    try:
        async with VllmClient(f"http://127.0.0.1:{port}") as client:
            await asyncio.wait_for(client.wait_until_ready(), 240)
            tracker.answered(time.time())
            assert await client.models() == ("tiny",)
            *_, done = [event async for event in client.chat(None, [Message("user", "hello")], max_tokens=5)]
        assert isinstance(done, Done)
        assert done.usage is not None
        assert done.usage.completion_tokens == 5
        run = EngineDirectory(tmp_path / "engines" / "vllm-tiny.service").run()
        assert run is not None
        processes = descendants(run.supervisor.pid)
        assert len(processes) >= 4  # the server, EngineCore and two workers
    finally:
        await asyncio.to_thread(runner.stop, "tiny")
        follower.stop()
        runner.close()
    assert not any(each.alive for each in processes)
    state = runner.state("tiny")
    assert state is not None
    assert (state.active, state.exit_status) == ("inactive", 0)
    reached = [phase for phase, _ in tracker.standing.entered]
    order = [Phase.INITIALISING, Phase.LOADING, Phase.PROFILING, Phase.LISTENING, Phase.READY]
    assert reached[:5] == order
    times = [at for _, at in tracker.standing.entered]
    assert all(at is not None for at in times)
    assert tracker.standing.kv_cache_tokens


async def test_a_real_vllm_stopped_while_it_starts(tmp_path: Path) -> None:
    """vLLM loses a SIGTERM in its start and heeds a second one."""
    runner = EmbeddedRunner(home=tmp_path / "engines")
    spec = EngineSpec(
        "tiny",
        str(tiny_model.make(tmp_path / "tiny")),
        Placement(((0,),)),
        EngineOptions(port=free_port(18100), load_format="dummy", max_model_len=1024, enforce_eager=True),
        program=(f"{os.environ['GPUDECK_ENGINE_ENV']}/bin/vllm",),
        environment=(("HF_HUB_OFFLINE", "1"), ("VLLM_CPU_KVCACHE_SPACE", "1")),
    )
    runner.install(spec)
    await asyncio.to_thread(runner.start, "tiny")
    files = EngineDirectory(tmp_path / "engines" / "vllm-tiny.service")
    deadline = time.monotonic() + 120
    while "EngineCore" not in files.log.read_text(errors="replace"):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    run = files.run()
    assert run is not None
    processes = descendants(run.supervisor.pid)
    await asyncio.to_thread(runner.stop, "tiny")
    runner.close()
    assert not any(each.alive for each in processes)
    state = runner.state("tiny")
    assert state is not None
    assert (state.active, state.result) == ("inactive", "success")  # and not by SIGKILL
