"""The panel shows what the installed vLLM says to a command, in the review before a start."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.app.programs import EngineProgram
from gpudeck.services.plan.findings import VerdictState
from gpudeck.widgets.unit_preview import UnitPreview
from tests.app.panels import COMPACT, demo, panel
from tests.services.vllm.test_asking import answering, replying

pytestmark = pytest.mark.panel

MODEL = "demo-llama-3.1-8b"


@pytest.mark.parametrize("size", [(160, 50), COMPACT])
async def test_a_refusal_stands_in_the_review(home: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    vllm = replying(tmp_path / "engine", "refused", "unrecognized arguments: --swap-space 4")
    async with panel(replace(demo(), host=True, program=EngineProgram((str(vllm),))), size) as desk:
        await desk.choose_model(MODEL)
        await desk.place((1,))
        await desk.press("v")
        await desk.sees("The installed vLLM refuses: unrecognized arguments")
        # The same command again is known at once.
        await desk.press("escape", "v")
        await desk.sees("The installed vLLM refuses: unrecognized arguments")
        assert (tmp_path / "engine" / "count").read_text() == "asked\n"
        await desk.press("escape")
        # The verdict on the board says it too from then on, and counts it; of another command it says nothing.
        state = desk.panel.state
        assert (state.judgement.state, state.judgement.findings[0].rule) == (VerdictState.BLOCKED, "vllm-refuses")
        await desk.sees("vllm-refuses")
        desk.panel.draft_changed(options=replace(state.draft.options, port=8011))
        assert "vllm-refuses" not in {finding.rule for finding in desk.panel.state.judgement.findings}
        desk.panel.draft_changed(options=state.draft.options)
        assert desk.panel.state.judgement.findings[0].rule == "vllm-refuses"


async def test_leaving_the_review_calls_the_question_off(home: Path, tmp_path: Path) -> None:
    vllm = answering(tmp_path / "engine", f"echo $$ >{tmp_path}/asked; exec sleep 600")
    async with panel(replace(demo(), host=True, program=EngineProgram((str(vllm),)))) as desk:
        await desk.choose_model(MODEL)
        await desk.place((1,))
        await desk.press("v")
        await desk.sees("Asking the installed vLLM")
        await desk.until(lambda: (tmp_path / "asked").exists() and (tmp_path / "asked").read_text(), "question")
        await desk.press("escape")
        await desk.until(
            lambda: not Path(f"/proc/{(tmp_path / 'asked').read_text().strip()}").exists(), "end of asking"
        )


async def test_the_demo_asks_nobody(home: Path) -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(MODEL)
        await desk.place((1,))
        await desk.press("v")
        await desk.until(lambda: isinstance(desk.panel.screen, UnitPreview), "review")
        assert "installed vLLM" not in desk.shown
