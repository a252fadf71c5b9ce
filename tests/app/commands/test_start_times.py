"""What start and status tell of a start's phases, and of one that stands still."""

import time
from pathlib import Path

import pytest

from gpudeck.services.engine import choose
from gpudeck.services.engine.starts import times
from gpudeck.services.plan.types import EngineOptions
from tests.rigs.as_command import Gpudeck
from tests.rigs.at_the_panel import free_port
from tests.rigs.small_engines import engine

MODEL = "demo-llama-3.1-8b"


def test_a_second_start_says_how_long_is_left(gpudeck: Gpudeck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUDECK_SIMULATOR_SPEED", "2")
    install = ("install", "--demo", MODEL, "--stage", "1", "--name", "timed", "--port", str(free_port()), "--yes")
    assert gpudeck(*install).code == 0
    first = gpudeck("start", "timed", "--demo")
    assert "about " not in first.out
    assert "loading weights" in first.out.splitlines()[-1]
    status = gpudeck("status", "timed", "--demo")
    assert [line for line in status.out.splitlines() if line.startswith("  start ") and "loading weights" in line]
    assert gpudeck("stop", "timed", "--demo").code == 0
    assert gpudeck("status", "timed", "--demo").code == 3
    second = gpudeck("start", "timed", "--demo")
    assert "about " in second.out  # to be ready, or 5 s left


def test_a_start_that_stands_still_names_five_things_to_check(
    gpudeck: Gpudeck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(times, "STILL_S", 0.2)
    runner = choose.open_runner(demo=True)
    script = "sleep 3; echo RuntimeError: tired; exit 1"
    runner.install(engine(tmp_path, "stuck", script, options=EngineOptions(port=free_port())))
    done = gpudeck("start", "stuck", "--demo")
    assert done.code == 1
    told = [line.strip() for line in done.out.splitlines()]
    assert any("starting: nothing has moved for" in line and line.endswith("What to check:") for line in told)
    assert (
        "does not hold: model path. /models/none is not there: give a model directory, a .gguf file or a hub id."
        in (told)
    )
    for what in ("tokenizer path", "memory", "max-model-len", "max-num-seqs"):
        assert sum(f": {what}. " in line for line in told) == 1


def test_status_of_a_start_says_where_it_is(gpudeck: Gpudeck, tmp_path: Path) -> None:
    runner = choose.open_runner(demo=True)
    line = "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.00s/it]"
    runner.install(
        engine(tmp_path, "loads", f"echo '{line}'; exec sleep 1000", options=EngineOptions(port=free_port()))
    )
    assert gpudeck("start", "loads", "--demo", "--no-wait").code == 0
    end = time.monotonic() + 20
    while "loading weights 50 %" not in (said := gpudeck("status", "loads", "--demo").out):
        assert time.monotonic() < end, said
    assert [line for line in said.splitlines() if line.startswith("  start   ")]
