"""The pictures: what is to be seen on each, and what a person does to get there."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gpudeck.services.plan.dragging import NewStage, Rank
from gpudeck.services.plan.findings import VerdictState
from gpudeck.widgets.bench_page import BenchPage
from gpudeck.widgets.proposal_list import ProposalRows
from screenshots.stage import Stage

WIDE = (200, 50)
COMPACT = (80, 24)
SMALL_MODEL = "demo-llama-3.1-8b"
LARGE_MODEL = "demo-qwen2.5-14b"


@dataclass(frozen=True, slots=True)
class Scene:
    columns: int
    rows: int
    play: Callable[[Stage], Awaitable[None]]
    box: str = "mixed"


async def serving(stage: Stage) -> None:
    """Two cards as one TP group serve; one question was answered, the next answer is coming."""
    await two_cards_in_a_group(stage)
    await stage.start()
    await stage.press("c")
    await stage.ask("What are you, and where do you run?")
    await stage.hear_out()
    await stage.clear_notices()
    await stage.ask("How many requests fit at once?")
    await stage.until_busy()
    await stage.seconds(0.8)


async def dragging(stage: Stage) -> None:
    """A second card over the group of a first; every target says what a drop would make."""
    await stage.choose_model(LARGE_MODEL)
    await stage.carry(1, NewStage(0))
    await stage.drop()
    await stage.carry(2, Rank(0, 1))


async def blocked(stage: Stage) -> None:
    """All three cards in one TP group: the heads do not divide, and the group is of two kinds."""
    await two_cards_in_a_group(stage)
    await stage.carry(0, Rank(0, 2))
    await stage.drop()
    await stage.until(lambda: stage.panel.state.judgement.state is VerdictState.BLOCKED, "blocked verdict")


async def proposals(stage: Stage) -> None:
    """What is proposed for a model on a mixed box, two engines side by side among it."""
    await stage.choose_model(SMALL_MODEL)
    await stage.press("p")
    await stage.until(lambda: stage.panel.state.draft.placement.gpus, "proposal")
    await stage.clear_notices()
    await stage.press("p")
    await stage.until(lambda: "two engines" in stage.panel.screen.query_one(ProposalRows).plain, "proposals")


async def two_plans(stage: Stage) -> None:
    """Two engines planned on one box; the card that each lacks is marked as the other's."""
    await proposals(stage)
    await stage.press("down", "enter")
    await stage.until(lambda: len(stage.panel.state.drafts.all) > 1, "two plans")
    await stage.seconds(0.4)


async def compact_board(stage: Stage) -> None:
    await two_cards_in_a_group(stage)
    await stage.clear_notices()


async def compact_log(stage: Stage) -> None:
    await two_cards_in_a_group(stage)
    await stage.start()
    await stage.clear_notices()


async def links_map(stage: Stage) -> None:
    """An engine over four of eight cards at work, and the links as a map."""
    await four_cards_serve(stage)
    await stage.press("t")
    await asked_about_links(stage)
    await stage.seconds(0.8)


async def card_detail(stage: Stage) -> None:
    """All of one of the cards that the engine is on."""
    await four_cards_serve(stage)
    await stage.press("1", "down", "i")
    await asked_about_links(stage)
    await stage.press("tab", "1", "z")
    await stage.seconds(0.4)


async def measured(stage: Stage) -> None:
    """Two stages on cards of two kinds, measured with one request and with eight at once."""
    await stage.choose_model(SMALL_MODEL)
    for gpu, target in ((0, NewStage(0)), (1, NewStage(1))):
        await stage.carry(gpu, target)
        await stage.drop()
    await stage.start()
    await stage.press("3", "M")
    await stage.until(lambda: isinstance(stage.panel.screen, BenchPage), "form")
    for text in ("512", "64", "1,8"):
        await stage.press("tab")
        await stage.type(text)
    await stage.press("enter")
    await stage.until(lambda: stage.panel.bench_desk.running, "run")
    await stage.until(lambda: not stage.panel.bench_desk.running, "end of the run")
    await stage.seconds(2.0)
    await stage.clear_notices()


async def four_cards_serve(stage: Stage) -> None:
    await stage.choose_model(LARGE_MODEL)
    for gpu, target in ((0, NewStage(0)), (1, Rank(0, 1)), (2, Rank(0, 2)), (3, Rank(0, 3))):
        await stage.carry(gpu, target)
        await stage.drop()
    await stage.start()
    await stage.clear_notices()


async def asked_about_links(stage: Stage) -> None:
    await stage.press("c")
    await stage.ask("Tell me all that you know of NVLink.")
    await stage.until_busy()


async def two_cards_in_a_group(stage: Stage) -> None:
    await stage.choose_model(LARGE_MODEL)
    for gpu, target in ((1, NewStage(0)), (2, Rank(0, 1))):
        await stage.carry(gpu, target)
        await stage.drop()


SCENES = {
    "panel-wide": Scene(*WIDE, serving),
    "dragging": Scene(*WIDE, dragging),
    "blocked": Scene(*WIDE, blocked),
    "proposals": Scene(*WIDE, proposals),
    "two-plans": Scene(*WIDE, two_plans),
    "links-map": Scene(*WIDE, links_map, "nvswitch"),
    "card-detail": Scene(*WIDE, card_detail, "nvswitch"),
    "measured": Scene(*WIDE, measured),
    "compact-board": Scene(*COMPACT, compact_board),
    "compact-log": Scene(*COMPACT, compact_log),
}
