"""`gpudeck install`: the name, and the port that no other engine has."""

import json
from pathlib import Path

import pytest

from gpudeck.services.engine import choose
from gpudeck.services.engine.types import Runner
from gpudeck.services.plan.types import EngineOptions
from tests.rigs.as_command import Gpudeck
from tests.rigs.small_engines import engine

MODEL = str(Path(__file__).parents[2] / "data" / "models" / "qwen2.5-0.5b")


@pytest.fixture
def runner(home: Path, tmp_path: Path) -> Runner:
    """The demo's runner, with an engine `first` on port 8000."""
    runner = choose.open_runner(demo=True)
    runner.install(engine(tmp_path, "first", "exit", options=EngineOptions(port=8000)))
    return runner


def port_of(runner: Runner, name: str) -> int | None:
    state = runner.state(name)
    return state.spec.options.port if state is not None and state.spec is not None else None


def install(gpudeck: Gpudeck, name: str, *words: str) -> tuple[int, str]:
    done = gpudeck("install", MODEL, "--demo", "--stage", "1", "--name", name, "--yes", *words)
    return done.code, done.err


def test_the_next_port_that_no_engine_has_is_taken_and_told(gpudeck: Gpudeck, runner: Runner) -> None:
    assert install(gpudeck, "second") == (0, "Port 8000 is first's, so that second gets 8001.\n")
    assert port_of(runner, "second") == 8001
    # The same engine again keeps what it has.
    assert install(gpudeck, "second", "--max-num-seqs", "7")[0] == 0
    assert port_of(runner, "second") == 8001


def test_a_port_that_was_asked_for_and_is_anothers_is_refused_with_its_owner(gpudeck: Gpudeck, runner: Runner) -> None:
    for placed in (("--stage", "1"), ()):
        done = gpudeck("install", MODEL, "--demo", "--name", "second", "--yes", "--port", "8000", *placed)
        assert done.code == 1
        assert "Port 8000 is first's" in done.err
    assert port_of(runner, "second") is None
    assert install(gpudeck, "first", "--port", "8000") == (0, "")  # its own


def test_a_plan_without_a_port_is_not_blocked_by_another_engine(gpudeck: Gpudeck, runner: Runner) -> None:
    done = gpudeck("plan", MODEL, "--demo", "--json")
    assert (done.code, done.err) == (0, "")
    argv = json.loads(done.out)["placements"][0]["argv"]
    assert argv[argv.index("--port") + 1] == "8001"


def test_an_empty_name_is_refused(gpudeck: Gpudeck, home: Path) -> None:
    done = gpudeck("install", MODEL, "--demo", "--stage", "1", "--name", "", "--yes")
    assert done.refused
    assert "An engine needs a name" in done.err
