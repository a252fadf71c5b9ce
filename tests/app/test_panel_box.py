"""The box on the panel: all of a card, the map, what happens to the cards, and that only what is seen is read."""

import time
from dataclasses import dataclass, replace

import pytest
from textual.geometry import Offset

from gpudeck.services.box.simulated import SimulatedSource
from gpudeck.services.box.types import Box, BoxEvent, Demand, Severity, Snapshot
from tests.app.panels import COMPACT, WIDE, Desk, demo, panel

pytestmark = [pytest.mark.panel, pytest.mark.usefixtures("home")]


@dataclass
class Watched:
    """A demo box that notes what was asked of it, and to which things happen."""

    source: SimulatedSource
    asked: Demand = Demand.NOTHING
    events: tuple[BoxEvent, ...] = ()
    hung: int | None = None
    faults: tuple[str, ...] = ()

    def open(self) -> Box:
        return self.source.open()

    def read(self, demand: Demand = Demand.ALL) -> Snapshot:
        self.asked = demand
        shown = self.source.read(demand)
        readings = tuple(
            replace(reading, at=shown.at - 34, fault="GPU 1 does not answer.") if reading.gpu == self.hung else reading
            for reading in shown.readings
        )
        return replace(shown, box=replace(shown.box, faults=self.faults), readings=readings, events=self.events)

    def close(self) -> None:
        self.source.close()


async def is_asked(desk: Desk, box: Watched, demand: Demand) -> None:
    await desk.until(lambda: box.asked == demand, f"{demand} asked for")


async def test_only_what_is_seen_is_read_wide() -> None:
    box = Watched(SimulatedSource("mixed"))
    async with panel(replace(demo(), source=box), WIDE) as desk:
        await desk.sees("bonded NVLinks")
        await is_asked(desk, box, Demand.NOTHING)
        await desk.press("1", "i")
        await is_asked(desk, box, Demand.ALL)
        await desk.sees("Heat and power")
        await desk.press("i")
        await is_asked(desk, box, Demand.NOTHING)
        await desk.press("t")
        await is_asked(desk, box, Demand.TRAFFIC)
        await desk.press("2", "z")
        await is_asked(desk, box, Demand.NOTHING)
        await desk.press("z")
        await is_asked(desk, box, Demand.TRAFFIC)
        await desk.press("t")
        await is_asked(desk, box, Demand.NOTHING)


async def test_only_what_is_seen_is_read_compact() -> None:
    box = Watched(SimulatedSource("nvswitch"))
    async with panel(replace(demo(), source=box), COMPACT) as desk:
        await is_asked(desk, box, Demand.NOTHING)
        await desk.press("1", "i")
        await is_asked(desk, box, Demand.ALL)
        await desk.press("4")
        await is_asked(desk, box, Demand.NOTHING)
        await desk.press("1")
        await is_asked(desk, box, Demand.ALL)


async def test_the_detail_follows_the_cursor_and_escape_leaves_it() -> None:
    async with panel(demo(), COMPACT) as desk:
        await desk.press("1", "i")
        await desk.sees("GPU 0 NVIDIA GeForce RTX 4090 D")
        await desk.press("down")
        await desk.sees("GPU 1 NVIDIA A100-SXM4-40GB")
        await desk.press("tab")
        await desk.until(lambda: desk.panel.focused is desk.panel.deck.detail, "focus in the detail")
        await desk.press("end")
        await desk.sees("Processes")
        await desk.press("escape")
        await desk.until(lambda: "Processes" not in desk.shown, "cards alone")
        assert desk.panel.focused is desk.panel.deck.cards


async def test_what_happens_to_a_card_is_told_once_and_stays_in_view() -> None:
    box = Watched(SimulatedSource("mixed"))
    async with panel(replace(demo(), source=box), WIDE) as desk:
        await desk.sees("RTX 4090 D")
        box.events = (BoxEvent(time.time(), Severity.ERROR, "GPU 2: Xid 31: [red]a bad address.", 2, 31),)
        await desk.hears("GPU 2: Xid 31: [red]a bad address.")
        await desk.until(lambda: desk.shown.count("ago: GPU 2: Xid 31") == 2, "event above the cards and on the card")
        desk.panel.clear_notifications()
        snapshot = desk.panel.state.snapshot
        await desk.until(lambda: desk.panel.state.snapshot is not snapshot, "another snapshot")
        assert not desk.notices


async def test_a_hung_card_shows_its_age_and_a_card_that_is_missing_is_told() -> None:
    box = Watched(SimulatedSource("mixed"), hung=1, faults=("GPU 3 can not be opened: Unknown Error.",))
    async with panel(replace(demo(), source=box), WIDE) as desk:
        await desk.sees("✗ 34 s old: GPU 1 does not answer.")
        await desk.sees("✗ GPU 3 can not be opened: Unknown Error.")


async def test_the_cards_go_on_while_a_card_is_carried() -> None:
    """A snapshot waits for the pointer's next frame, and for a moment only where the pointer rests."""
    async with panel(demo()) as desk:
        board = desk.panel.deck.board
        board.grab(1, board.region.offset + Offset(4, 4))
        await desk.until(lambda: board.carried, "card in the air")
        before = desk.panel.state.snapshot
        await desk.until(lambda: desk.panel.state.snapshot is not before, "another snapshot")
        assert board.carried
