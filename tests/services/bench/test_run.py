"""Runs against servers of every temper, and against simulated engines."""

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.services.bench.run import Aim, Around, Bench, Step
from gpudeck.services.bench.types import Generator, Limits, Result, Workload
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineSpec, Placement
from tests.services.bench.servers import Pace, completing
from tests.services.http.stub import answer
from tests.services.simulator.conftest import Engines

SHORT = Workload(input_tokens=16, output_tokens=8, concurrency=(1, 3), requests=6)


async def measured(*aims: Aim, workload: Workload = SHORT, steps: list[Step] | None = None) -> Result:
    return await Bench(aims, workload, Limits(), Around(), (steps if steps is not None else []).append).run()


async def test_a_simulated_engine_is_measured_whole(engines: Engines) -> None:
    engine = engines.ready("--served-model-name", "demo")
    steps: list[Step] = []
    result = await measured(Aim("x", engine.url), steps=steps)
    assert [level.level for level in result.levels] == [1, 3]
    for level in result.levels:
        assert (level.completed, level.failed, level.partial) == (6, 0, False)
        assert (level.input_tokens, level.output_tokens) == (6 * 16, 6 * 8)
        assert level.first_token is not None
        assert level.queue is not None
    assert result.targets[0].model == "demo"
    assert not result.partial
    assert [step.done for step in steps if step.place == 0 and step.finished is None] == [0, 1, 2, 3, 4, 5, 6]
    assert steps[-1].finished == result.levels[-1]


async def test_never_more_at_once_than_asked_and_fixed_requests() -> None:
    pace = Pace(gap=0.003)
    async with completing(pace) as stub:
        await measured(Aim("x", stub.url))
    assert pace.most == 3
    asked = [json.loads(body) for path, _, body in stub.requests if path == "/v1/completions"]
    counted = [one for one in asked if "warm-up" not in one["cache_salt"]]
    assert len(counted) == 12
    assert {(len(a["prompt"]), a["max_tokens"], a["min_tokens"], a["ignore_eos"]) for a in counted} == {
        (16, 8, 8, True)
    }
    # No prompt comes twice: an answer out of the prefix cache would look quick.
    assert len({str(one["prompt"]) for one in counted}) == 12


async def test_the_load_is_split_between_engines() -> None:
    paces = [Pace(gap=0.002) for _ in range(2)]
    async with AsyncExitStack() as stack:
        stubs = [await stack.enter_async_context(completing(pace)) for pace in paces]
        aims = [Aim(str(number), stub.url) for number, stub in enumerate(stubs)]
        result = await measured(*aims, workload=replace(SHORT, concurrency=(1, 4), requests=8))
    assert [level.completed for level in result.levels] == [8, 8]
    assert [sum("warm-up" not in asked["cache_salt"] for asked in pace.asked) for pace in paces] == [8, 8]
    assert max(pace.most for pace in paces) == 2


async def test_an_open_loop_sends_whatever_becomes_of_it() -> None:
    pace = Pace(gap=0.02)
    async with completing(pace) as stub:
        result = await measured(
            Aim("x", stub.url), workload=replace(SHORT, concurrency=(), rates=(200.0,), requests=20)
        )
    assert result.levels[0].completed == 20
    assert pace.most > 3


@pytest.mark.parametrize(
    ("pace", "words"),
    [
        (Pace(refused=answer(500, '{"error": {"message": "boom"}}')), "failed (500): boom"),
        (Pace(refused=answer(400, '{"error": {"message": "no"}}')), "refused the request (400): no"),
        (Pace(refused=b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ndata: {}\n"), "stopped half way"),
        (Pace(refused=b"nonsense"), "hung up"),
    ],
)
async def test_failures_are_counted_by_their_reason(pace: Pace, words: str) -> None:
    async with completing(pace) as stub:
        result = await measured(Aim("x", stub.url))
    assert [level.failed for level in result.levels] == [6, 6]
    assert all(words in why for level in result.levels for why in level.errors)
    assert result.levels[0].tokens_per_s is None


async def test_an_engine_that_fails_from_the_first_request_on_is_told_at_once() -> None:
    async with completing(Pace(broken=True)) as stub:
        with pytest.raises(OperatorError, match="broke off"):
            await measured(Aim("x", stub.url))
    with pytest.raises(OperatorError, match="Nothing answers"):
        await measured(Aim("x", "http://127.0.0.1:1"))
    async with completing(Pace()) as stub:
        with pytest.raises(OperatorError, match="serves no model named 'other': it serves tiny"):
            await measured(Aim("x", stub.url, model="other"))


async def test_a_cancelled_run_keeps_what_has_come_and_ends_its_requests() -> None:
    pace = Pace(gap=0.005)
    async with completing(pace) as stub:

        def tell(step: Step) -> None:
            if step.place == 1 and step.done == 2:
                pace.endless = True
                asyncio.get_running_loop().call_later(0.05, bench.stop)

        bench = Bench([Aim("x", stub.url)], replace(SHORT, concurrency=(1, 2, 4)), Limits(), Around(), tell)
        result = await bench.run()
        async with asyncio.timeout(5):
            while pace.at_once:
                await asyncio.sleep(0.01)
    assert result.partial
    assert [(level.level, level.partial) for level in result.levels] == [(1, False), (2, True)]
    assert 2 <= result.levels[1].completed < 6


async def test_a_vllm_whose_own_benchmark_fails_is_measured_by_ours(tmp_path: Path) -> None:
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\necho 'ImportError: no pandas' >&2\nexit 3\n")
    program.chmod(0o755)
    spec = EngineSpec("x", "/m", Placement(((0,),)), program=(str(program),))
    async with completing(Pace()) as stub:
        result = await measured(Aim("x", stub.url, spec=spec), workload=replace(SHORT, generator=Generator.VLLM))
    assert result.workload.generator is Generator.OWN
    assert [level.completed for level in result.levels] == [6, 6]
    assert result.notes == (
        "vllm bench serve failed (3): ImportError: no pandas: measured by gpudeck's own load instead.",
    )
