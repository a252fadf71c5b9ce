"""Several plans on one box, by keys: begun, turned to, told of each other, discarded."""

from dataclasses import replace

import pytest

from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.types import EngineOptions
from tests.app.panels import COMPACT, WIDE, Desk, demo, panel

pytestmark = [pytest.mark.panel, pytest.mark.usefixtures("home")]
LLAMA, QWEN = "demo-llama-3.1-8b", "demo-qwen2.5-14b"


def rules(desk: Desk) -> set[str]:
    return {finding.rule for finding in desk.panel.state.judgement.findings}


async def test_the_form_names_the_unit_as_a_demo_calls_it() -> None:
    async with panel(demo(), COMPACT) as desk:
        await desk.choose_model(LLAMA)
        await desk.press("a")
        await desk.sees("its unit is gpudeck-demo-<name>.service")


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_a_card_of_another_plan_is_refused_until_it_is_shared_on_purpose(size: tuple[int, int]) -> None:
    async with panel(demo(), size) as desk:
        await desk.choose_model(LLAMA)
        await desk.place((1,))
        await desk.press("n")
        await desk.sees("no model yet")
        await desk.choose_model(LLAMA)
        draft = desk.panel.state.draft
        assert (draft.name, draft.options.port) == (f"{LLAMA}-2", 8001)
        await desk.sees(f"▲ {LLAMA}"[:14])  # the card in the pool says whose it is
        await desk.place((1,))
        await desk.until(lambda: "gpu-claimed" in rules(desk), "refusal")
        assert desk.panel.state.judgement.state is VerdictState.BLOCKED
        await desk.press("S")
        await desk.until(lambda: "gpu-shared-budget" in rules(desk), "what sharing asks for")
        assert "gpu-claimed" not in rules(desk)
        await desk.press("u")  # what can be undone is this plan's
        assert desk.panel.state.draft.placement.gpus == ()
        await desk.press("right_square_bracket")
        assert desk.panel.state.draft.name == LLAMA
        assert desk.panel.state.draft.placement.stages == ((1,),)
        await desk.press("u")
        assert desk.panel.state.draft.placement.gpus == ()


async def test_a_plan_is_turned_to_by_the_mouse_and_discarded_when_asked_twice() -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.place((1,))
        await desk.press("n")
        await desk.choose_model(QWEN)
        await desk.sees(f"● {LLAMA} 1")
        await desk.pilot.click(desk.panel.deck.plans, offset=(4, 0))
        await desk.until(lambda: desk.panel.state.draft.name == LLAMA, "its plan")
        await desk.press("d")
        await desk.sees("are forgotten")
        await desk.press("escape")
        assert len(desk.panel.state.drafts.all) == 2
        await desk.press("d", "y")
        await desk.until(lambda: len(desk.panel.state.drafts.all) == 1, "one plan")
        assert desk.panel.state.draft.name == QWEN
        await desk.press("right_square_bracket")
        await desk.hears("one plan only")


async def test_a_key_does_what_a_finding_says() -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.press("f")
        await desk.hears("No finding here has a fix")
        await desk.place((1,))
        small = replace(desk.panel.state.draft.options, gpu_memory_utilization=0.45)
        desk.panel.draft_changed(options=small)
        await desk.press("n")
        await desk.choose_model(LLAMA)
        await desk.place((1,))
        await desk.until(lambda: "gpu-claimed" in rules(desk), "refusal")
        await desk.press("f")
        await desk.until(lambda: "gpu-claimed" not in rules(desk), "the fix done")
        await desk.hears("Done for gpu-claimed")
        assert desk.panel.state.draft.shared_gpus == {1}
        desk.panel.deck.verdict.focus()
        await desk.until(lambda: "gpu-shared-budget" in rules(desk), "what sharing asks for")
        await desk.press("enter")
        await desk.hears("Done for gpu-shared-budget")
        assert desk.panel.state.draft.options.gpu_memory_utilization == pytest.approx(0.5)
        assert desk.panel.state.judgement.state is not VerdictState.BLOCKED


async def test_a_first_start_is_cautious_and_steps_up_once_it_has_run() -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.sees("cautious options")
        assert desk.panel.state.draft.options.max_model_len == 8192
        await desk.press("A")
        await desk.hears("has not run yet")
        await desk.place((1,))
        await desk.start()
        await desk.is_(LLAMA, "ready")
        await desk.press("2", "A")
        assert desk.panel.state.draft.options == EngineOptions(
            port=desk.panel.state.draft.options.port, load_format="dummy"
        )
        await desk.until(lambda: "cautious options" not in desk.shown, "title")
        await desk.press("A")
        await desk.sees("cautious options")


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_the_best_proposal_by_one_key_and_the_others_by_the_same(size: tuple[int, int]) -> None:
    async with panel(demo(), size) as desk:
        await desk.choose_model(LLAMA)
        await desk.press("p")
        await desk.until(lambda: desk.panel.state.draft.placement.gpus, "proposal")
        best = desk.panel.state.draft.placement
        await desk.hears("Proposed for context")
        await desk.press("p")
        await desk.sees("[context]")
        await desk.sees("TP1×PP1")
        await desk.press("o")
        await desk.sees("[concurrency]")
        await desk.sees("TP2×PP1")
        await desk.press("down", "enter")
        await desk.until(lambda: desk.panel.screen is desk.panel.deck, "list gone")
        await desk.until(lambda: desk.panel.state.draft.placement != best, "another proposal")
        await desk.press("u")
        assert desk.panel.state.draft.placement == best


async def test_a_proposal_leaves_the_cards_of_other_plans_alone() -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.place((1, 2))
        await desk.press("n")
        await desk.choose_model(LLAMA)
        await desk.press("p")
        await desk.until(lambda: desk.panel.state.draft.placement.gpus, "proposal")
        assert desk.panel.state.draft.placement.gpus == (0,)


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
async def test_what_if_there_were_another_card(size: tuple[int, int]) -> None:
    async with panel(demo(), size) as desk:
        await desk.choose_model(LLAMA)
        await desk.press("w")
        await desk.sees("one more NVIDIA GeForce RTX 4090 D")
        await desk.press("enter")
        await desk.sees("what if")
        await desk.place((3,))
        assert desk.panel.state.judgement.state is not VerdictState.BLOCKED
        assert "what-if" in rules(desk)
        desk.panel.clear_notifications()
        await desk.press("s")
        await desk.hears("that the box does not have")
        assert desk.panel.screen is desk.panel.deck
        await desk.press("W")
        await desk.until(lambda: desk.panel.state.draft.placement.gpus == (), "the box as it is")
        assert "what if" not in str(desk.panel.deck.query_one("#plan").border_title)


async def test_a_proposal_of_several_engines_makes_a_plan_of_each() -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.press("p")
        await desk.until(lambda: desk.panel.state.draft.placement.gpus, "proposal")
        await desk.press("p")
        await desk.sees("two engines")
        await desk.press("down", "enter")
        await desk.until(lambda: len(desk.panel.state.drafts.all) > 1, "two plans")
        plans = desk.panel.state.drafts.all
        assert sorted(gpu for plan in plans for gpu in plan.placement.gpus) == [0, 1, 2]
        assert len({plan.options.port for plan in plans}) == len({plan.name for plan in plans}) == len(plans)
        assert desk.panel.state.draft.name == LLAMA
        assert desk.panel.state.judgement.state is not VerdictState.BLOCKED
