"""Two real vLLMs (CPU build) side by side under the real systemd, each its own unit, port, cards and log."""

import json
import os
import urllib.request
from pathlib import Path

import pytest

from gpudeck.app import places
from gpudeck.app.cli import run
from gpudeck.services.engine.draining import InFlight, in_flight
from gpudeck.services.engine.listening import answers_itself
from gpudeck.services.engine.phases import Phase
from gpudeck.services.engine.starts.kept import StartBook
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from tests.rigs import tiny_model
from tests.rigs.at_the_panel import free_port

pytestmark = [
    pytest.mark.engine,
    pytest.mark.systemd,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("WITH_SYSTEMD"), reason="run by tests/rigs/with_systemd"),
    pytest.mark.skipif(not os.environ.get("GPUDECK_ENGINE_ENV"), reason="no engine environment: tests/run --all"),
]


def spec(name: str, model: Path, card: int) -> EngineSpec:
    """An engine on one card and one core of its own."""
    return EngineSpec(
        name=name,
        model=str(model),
        placement=Placement(((card,),)),
        options=EngineOptions(
            port=free_port(),
            served_model_name=name,
            max_model_len=512,
            load_format="dummy",
            enforce_eager=True,
        ),
        program=(str(Path(os.environ["GPUDECK_ENGINE_ENV"]) / "bin" / "vllm"),),
        environment=(
            ("VLLM_CPU_KVCACHE_SPACE", "1"),
            ("VLLM_CPU_OMP_THREADS_BIND", str(card)),
            ("HF_HUB_OFFLINE", "1"),
            ("VLLM_NO_USAGE_STATS", "1"),
        ),
    )


def served(engine: EngineSpec) -> list[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{engine.options.port}/v1/models", timeout=10) as answer:
        return [model["id"] for model in json.load(answer)["data"]]


def test_two_engines_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tiny_model.make(tmp_path / "tiny")
    one, two = spec("one", tmp_path / "tiny", 0), spec("two", tmp_path / "tiny", 1)
    clash = spec("clash", tmp_path / "tiny", 1)
    runner = SystemdRunner(Scope.SYSTEM)

    def state(name: str) -> UnitState:
        found = runner.state(name)
        assert found is not None
        return found

    try:
        for each in (one, two, clash):
            runner.install(each)
        # Both come up at the same time.
        assert run(["start", "one", "--no-wait"]) == 0
        assert run(["start", "two"]) == 0
        assert run(["start", "one"]) == 0
        told = capsys.readouterr().out
        assert "loading weights" in told
        assert [served(one), served(two)] == [["one"], ["two"]]
        for each in (one, two):
            engine = state(each.name)
            assert answers_itself(engine, each.options.port)
            assert in_flight(engine) == InFlight(0, 0)
            # A real vLLM runs by what systemd has loaded, whatever it wrote over its title.
            assert runner.drift(each.name) == ()
        # Each has its own process, cards and log.
        assert state("one").main_pid != state("two").main_pid
        logs = {name: "\n".join(line.text for line in runner.history(name)) for name in ("one", "two")}
        assert f"--port {one.options.port}" not in logs["two"]
        assert all("Application startup complete" in text for text in logs.values())
        times = StartBook(places.starts_home()).of(state("two")).times(two)
        assert times[0].of(Phase.LOADING) >= 0
        assert {Phase.STARTING, Phase.INITIALISING} <= {phase for phase, _seconds in times[0].phases}
        # A third on a card that one of them has is stopped before systemd is asked.
        with pytest.raises(OperatorError, match="GPU 1 belongs to two, which runs"):
            run(["start", "clash"])
        assert state("clash").active == "inactive"
        # One stops, and the other goes on.
        before = state("two")
        assert run(["stop", "one", "--drain"]) == 0
        assert state("one").active == "inactive"
        assert state("two") == before
        assert served(two) == ["two"]
        assert run(["start", "clash", "--force", "--no-wait"]) == 0
        assert run(["stop", "clash"]) == 0
    finally:
        for name in ("one", "two", "clash"):
            if runner.state(name) is not None:
                runner.remove(name)
        runner.close()
