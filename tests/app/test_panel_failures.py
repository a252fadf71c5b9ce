"""A start that fails ends in one card: the line, what it means here, and the fix on the board with a key."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.app.failures import failure_of
from gpudeck.app.programs import EngineProgram
from gpudeck.app.state import DeckState, EngineInfo
from gpudeck.services.engine import choose
from gpudeck.services.engine.failure import DecisiveLine
from gpudeck.services.engine.phases import Phase, Standing
from gpudeck.services.engine.types import Runner, Scope, UnitState
from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from tests.app.panels import COMPACT, WIDE, demo, panel
from tests.app.test_panel_engines import select
from tests.rigs.at_the_panel import free_port
from tests.rigs.small_engines import engine

pytestmark = pytest.mark.panel

MODELS = Path(__file__).parents[1] / "data" / "models"
TOO_LONG = (
    "ValueError: To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is needed, "
    "which "
    "is larger than the available KV cache memory (4.87 GiB). Based on the available memory, the estimated maximum "
    "model "
    "length is 39856. Try increasing `gpu_memory_utilization`"
)


@pytest.fixture
def runner(home: Path) -> Runner:
    return choose.open_runner(demo=True)


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_a_failed_start_is_mended_with_one_key(
    home: Path, runner: Runner, tmp_path: Path, size: tuple[int, int]
) -> None:
    script = f"echo 'Traceback (most recent call last):'; echo {shlex.quote(TOO_LONG)}; exit 1"
    model = str(MODELS / "llama-3.1-8b")
    runner.install(engine(tmp_path, "chat", script, model=model, options=EngineOptions(port=free_port())))
    async with panel(demo(), size) as desk:
        await select(desk, "chat")
        await desk.press("s")
        await desk.is_("chat", "failed")
        await desk.press("3")  # on a narrow screen the start turned to the log
        await desk.sees("has no room for one")
        await desk.sees("--max-model-len 39456")
        await desk.press("f")
        await desk.hears("It stands on the board")
        await desk.until(lambda: desk.panel.state.draft.options.max_model_len == 39456, "the mended plan")
        assert desk.panel.state.draft.name == "chat"
        # The unit is as it was until the operator starts the plan.
        state = runner.state("chat")
        assert state is not None
        assert state.spec is not None
        assert state.spec.options.max_model_len is None


def failed(line: str, *, spec: EngineSpec | None = None, word: str = "failed") -> EngineInfo:
    unit = UnitState("chat", "vllm-chat.service", Scope.SYSTEM, spec is not None, word, spec=spec)
    entered = ((Phase.INITIALISING, None), (Phase.FAILED, None))
    return EngineInfo(unit, Standing(Phase.FAILED, entered=entered, decisive=DecisiveLine(line, 7, "APIServer")))


def test_a_port_that_no_other_engine_has_is_proposed() -> None:
    spec = EngineSpec("chat", "/m", Placement(((0,),)), EngineOptions(port=8000))
    other = EngineInfo(
        UnitState(
            "coder",
            "vllm-coder.service",
            Scope.SYSTEM,
            True,
            "active",
            spec=replace(spec, name="coder", options=EngineOptions(port=8001)),
        )
    )
    info = failed("OSError: [Errno 98] Address already in use", spec=spec)
    state = DeckState(EngineProgram(("vllm",)), engines={"chat": info, "coder": other})
    found = failure_of(state, info)
    assert found is not None
    assert found.change == options_change(port=8002)
    assert found.line_number == 7


def test_an_engine_that_runs_and_a_reason_that_nobody_knows_have_no_card() -> None:
    state = DeckState(EngineProgram(("vllm",)))
    assert failure_of(state, failed("ZeroDivisionError: division by zero")) is None
    assert failure_of(state, failed("OSError: [Errno 98] Address already in use", word="active")) is None
