"""`vllm bench serve`: its command, its result file, its end.  tests/engine runs the real one."""

import asyncio
import json
from pathlib import Path

import pytest

from gpudeck.services.bench.figures import level_of
from gpudeck.services.bench.types import Workload
from gpudeck.services.bench.vllm_load import VllmLoad, has_bench, read_result
from gpudeck.services.errors import OperatorError

RESULT = Path(__file__).parents[2] / "data" / "bench" / "vllm-bench-serve-0.32.json"
WORK = Workload(input_tokens=64, output_tokens=16, concurrency=(2,), requests=8)


def load(program: Path, workload: Workload = WORK) -> VllmLoad:
    return VllmLoad((str(program),), "http://127.0.0.1:8000", "tiny", "/models/tiny", workload, "salt", "secret")


def script(folder: Path, text: str) -> Path:
    program = folder / "vllm"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


def test_the_result_of_a_real_run() -> None:
    requests = read_result(RESULT)
    document = json.loads(RESULT.read_text())
    level = level_of(2, 8, requests)
    assert (level.completed, level.failed) == (8, 0)
    assert (level.input_tokens, level.output_tokens) == (
        document["total_input_tokens"],
        document["total_output_tokens"],
    )
    # Our percentiles are vLLM's own.
    for ours, theirs in (("first_token", "ttft"), ("between_tokens", "itl"), ("end_to_end", "e2el")):
        told = getattr(level, ours)
        assert told.mean * 1000 == pytest.approx(document[f"mean_{theirs}_ms"])
        assert told.p50 * 1000 == pytest.approx(document[f"median_{theirs}_ms"])
        assert told.p99 * 1000 == pytest.approx(document[f"p99_{theirs}_ms"])
    assert level.tokens_per_s == pytest.approx(document["output_throughput"], rel=0.05)


def test_an_older_result_without_beginnings_and_with_failures(tmp_path: Path) -> None:
    document = json.loads(RESULT.read_text())
    for key in ("latencies", "start_times"):
        del document[key]
    document["errors"][0] = "Traceback\n  File x\naiohttp.ClientError: gone\x1b[2J\n"
    path = tmp_path / "result.json"
    path.write_text(json.dumps(document))
    level = level_of(2, 8, read_result(path))
    assert level.completed == 7
    assert dict(level.errors) == {"aiohttp.ClientError: gone^[[2J": 1}
    assert level.seconds == pytest.approx(document["duration"])


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"ttfts": [1], "itls": [], "errors": []}'])
def test_what_is_no_result_is_told_in_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(OperatorError, match="no result that can be read"):
        read_result(path)
    with pytest.raises(OperatorError):
        read_result(tmp_path / "missing.json")


def test_the_command(tmp_path: Path) -> None:
    words = " ".join(load(script(tmp_path, "")).command(2.0, Path("/out")))
    for part in (
        "bench serve --base-url http://127.0.0.1:8000 --model tiny --tokenizer /models/tiny",
        "--random-input-len 64 --random-output-len 16 --num-prompts 8 --max-concurrency 2",
        "--seed 0 --ignore-eos", "--save-detailed --result-dir /out",
    ):  # fmt: skip
        assert part in words
    assert "secret" not in words
    open_loop = Workload(concurrency=(), rates=(2.5,))
    assert "--request-rate 2.5" in " ".join(load(script(tmp_path, ""), open_loop).command(2.5, Path("/out")))


async def test_a_run_is_followed_by_its_bar_and_its_result_read(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        'while [ "$1" != --result-dir ]; do shift; done\n'
        'test "$OPENAI_API_KEY" = secret || exit 4\n'
        f"printf '\\r 38%%|xx | 3/8 [00:01<00:02]' >&2; cp {RESULT} \"$2/result.json\"",
    )
    seen: list[tuple[int, int]] = []
    requests = await load(program).level(2, lambda done, failed: seen.append((done, failed)), asyncio.Event())
    assert len(requests) == 8
    assert seen == [(3, 0)]


async def test_a_stop_ends_it_with_all_its_processes(tmp_path: Path) -> None:
    program = script(tmp_path, f"sleep 1000 & echo $! > {tmp_path}/child; echo up; wait")
    stop = asyncio.Event()
    running = asyncio.ensure_future(load(program).level(2, lambda done, failed: None, stop))
    child = tmp_path / "child"
    async with asyncio.timeout(10):
        while not (child.exists() and child.read_text().strip()):
            await asyncio.sleep(0.01)
        stop.set()
        assert await running == []
        while Path(f"/proc/{child.read_text().strip()}/cmdline").exists():
            state = Path(f"/proc/{child.read_text().strip()}/stat").read_text().split()[2]
            if state == "Z":
                break
            await asyncio.sleep(0.01)


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="can not be run"):
        await load(tmp_path / "gone").level(2, lambda done, failed: None, asyncio.Event())


def test_whether_an_environment_has_it(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3.11" / "site-packages" / "vllm"
    for file in ("benchmarks/serve.py", "entrypoints/cli/benchmark/serve.py"):
        assert not has_bench((str(tmp_path / "bin" / "vllm"),))
        (site / file).parent.mkdir(parents=True)
        (site / file).write_text("")
        (tmp_path / "bin").mkdir(exist_ok=True)
        python = tmp_path / "bin" / "python"
        if not python.exists():
            python.symlink_to("/usr/bin/python3")
        program = tmp_path / "bin" / "vllm"
        program.write_text(f"#!{python}\n")
        program.chmod(0o755)
    assert has_bench((str(tmp_path / "bin" / "vllm"),))
