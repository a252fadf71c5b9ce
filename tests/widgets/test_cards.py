"""All cards in one view: what is told of each at every density, and that only changed rows are drawn again."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.message import Message

from gpudeck.services.box.types import GIB, Box, BoxEvent, GpuProcess, Severity, Snapshot
from gpudeck.widgets.cards import facts
from gpudeck.widgets.cards.box_cards import BoxCards
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import width_of
from gpudeck.widgets.messages import CardChosen, CardDragged
from tests.widgets.board_boxes import MIXED, snapshot, uniform


class Cards(App[None]):
    def __init__(self, first: Snapshot | None = None, glyphs: Glyphs | None = None) -> None:
        super().__init__()
        self.first, self.cards = first, BoxCards(glyphs=glyphs)
        self.told: list[Message] = []

    def compose(self) -> ComposeResult:
        yield self.cards

    def on_mount(self) -> None:
        self.cards.focus()
        if self.first is not None:
            self.cards.show(self.first)

    def on_card_chosen(self, message: CardChosen) -> None:
        self.told.append(message)

    def on_card_dragged(self, message: CardDragged) -> None:
        self.told.append(message)


async def test_a_full_card_tells_everything() -> None:
    first = snapshot(MIXED, throttle_reasons=("thermal",))
    async with Cards(first).run_test(size=(46, 24)) as pilot:
        shown = pilot.app.query_one(BoxCards).plain
        for words in (
            "0  RTX 4090 D",
            "8.9 · PCIe 4×16",
            "NV12 → 2",
            "61 %",
            "14.2 of 24.0 GiB",
            "71 °C · 312 of 425 W · ▲ thermal",
            "└ gemma · stage 0 · rank 0",
            "13.9 GiB",
        ):
            assert words in shown


@pytest.mark.parametrize("size", [(160, 48), (100, 30), (80, 18), (44, 40), (30, 12)])
async def test_sixteen_cards_stay_readable_and_nothing_is_wider_than_the_view(size: tuple[int, int]) -> None:
    async with Cards(snapshot(uniform(16))).run_test(size=size) as pilot:
        cards = pilot.app.query_one(BoxCards)
        await pilot.pause()
        rows = cards.plain.splitlines()
        for index in range(16):
            assert any(row[1:].startswith(f"{index:<2} ") and "H200" in row for row in rows)
        assert all(width_of(line) <= cards.size.width for line in cards.lines)
        if size[1] >= 40:
            assert len(rows) <= size[1]  # all of them at once


async def test_what_a_card_does_not_report_is_not_a_zero() -> None:
    first = snapshot(
        MIXED, utilization_percent=None, memory_used_bytes=None, temperature_c=None, power_w=None, processes=()
    )
    async with Cards(first).run_test(size=(60, 30)) as pilot:
        card = pilot.app.query_one(BoxCards).plain.split("A100")[0]
        assert card.count("n/a") == 4
        assert " 0 %" not in card


async def test_a_fault_is_told_in_words_on_every_density() -> None:
    for size in ((60, 30), (60, 4), (120, 3)):
        first = snapshot(MIXED, fault="GPU 0 is off the bus.")
        async with Cards(first).run_test(size=size) as pilot:
            assert "✗ GPU 0 is off the bus." in pilot.app.query_one(BoxCards).plain


async def test_stale_readings_and_trouble_are_told() -> None:
    async with Cards().run_test(size=(60, 30)) as pilot:
        cards = pilot.app.query_one(BoxCards)
        assert "Reading the cards" in cards.plain
        cards.show(snapshot(MIXED), stale=12.4)
        assert "▲ These readings are 12 s old." in cards.plain
        cards.show(snapshot(MIXED, at=2.0))
        assert "old" not in cards.plain
        cards.show_trouble("The driver does not answer: run `gpudeck doctor`.")
        assert "✗ The driver does not answer" in cards.plain
        assert "RTX 4090 D" in cards.plain
        cards.show(Snapshot(Box(()), 3.0, ()))
        assert "no GPU" in cards.plain


async def test_only_rows_that_changed_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Region] = []
    async with Cards(snapshot(MIXED)).run_test(size=(60, 30)) as pilot:
        cards = pilot.app.query_one(BoxCards)
        await pilot.pause()
        keep = BoxCards.refresh

        def noting(self: BoxCards, *regions: Region, **how: bool) -> BoxCards:
            drawn.extend(regions)
            return keep(self, *regions, **how)

        monkeypatch.setattr(BoxCards, "refresh", noting)
        cards.show(snapshot(MIXED, temperature_c=72))
        assert [region.y for region in drawn] == [3]


async def test_the_cursor_chooses_a_card_for_the_board() -> None:
    app = Cards(snapshot(uniform(16)))
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.press("j", "down", "k", "end", "space")
        assert app.cards.chosen == 15
        assert [message.gpu for message in app.told if isinstance(message, CardChosen)] == [15]
        assert app.cards.scroll_offset.y > 0
        # The chosen one of many unfolds.
        assert "power" not in app.cards.plain
        assert "util" in app.cards.plain


async def test_a_press_that_moves_hands_the_card_to_the_board() -> None:
    app = Cards(snapshot(MIXED))
    async with app.run_test(size=(60, 30)) as pilot:
        await pilot.mouse_down(BoxCards, offset=(5, 7))
        await pilot.hover(BoxCards, offset=(9, 8))
        await pilot.mouse_up(BoxCards, offset=(9, 8))
        await pilot.hover(BoxCards, offset=(12, 9))
        dragged = [message for message in app.told if isinstance(message, CardDragged)]
        assert [message.gpu for message in dragged] == [1]


async def test_ascii_draws_in_ascii() -> None:
    async with Cards(snapshot(MIXED), Glyphs.ascii()).run_test(size=(60, 30)) as pilot:
        assert pilot.app.query_one(BoxCards).plain.isascii()


def test_foreign_names_are_written_out() -> None:
    process = GpuProcess(1, "evil\x1b[2J", GIB, user="[red]root")
    words = facts.process_in_short(process, Glyphs.unicode())
    assert "\x1b" not in words
    assert "[red]root" in words


@pytest.mark.parametrize(("peers", "words"), [((1,), "NV4 → 1"), ((1, 2, 3, 5), "NV4 → 1-3, 5"), ((), "PCIe 4×16")])
def test_links_in_short(peers: Iterable[int], words: str) -> None:
    from gpudeck.services.box.types import Link, Pcie

    box = uniform(6)
    first = replace(box.gpus[0], pcie=Pcie(gen=4, width=16))
    box = Box((first, *box.gpus[1:]), tuple(Link(0, peer, "NV4") for peer in peers))
    assert facts.links_in_short(box, first, Glyphs.unicode()) == words


async def test_wide_names_are_measured_in_cells() -> None:
    first = snapshot(MIXED, processes=(GpuProcess(1, "推論サーバー" * 6, GIB),))
    async with Cards(first).run_test(size=(46, 24)) as pilot:
        cards = pilot.app.query_one(BoxCards)
        assert all(cell_len(row) <= 46 for row in cards.plain.splitlines())
        assert "…" in cards.plain


async def test_what_befell_the_box_and_a_card_is_told_and_fades() -> None:
    events = (
        BoxEvent(1000.0, Severity.INFO, "GPU 1: NVLink 3 came up.", 1),
        BoxEvent(1030.0, Severity.ERROR, "GPU 0: Xid 31.", 0, 31),
    )
    box = replace(MIXED, faults=("GPU 3 can not be opened.",))
    for size, on_card in (((70, 40), "✗ 20 s ago: GPU 0: Xid 31."), ((90, 8), "✗ Xid 31"), ((130, 8), "✗ Xid 31")):
        app = Cards(replace(snapshot(box, at=1050.0), events=events))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            rows = app.cards.plain.splitlines()
            assert rows[0] == "✗ GPU 3 can not be opened."
            assert rows[1] == "✗ 20 s ago: GPU 0: Xid 31."
            app.cards.choose(2)  # so that the first card is short where there is no room
            card = app.cards.plain.split("RTX 4090")[1].split("A100")[0]
            assert on_card in card
            app.cards.show(replace(snapshot(box, at=1100.0), events=events))
            assert "Xid 31" in app.cards.plain
            assert "came up" not in app.cards.plain
            app.cards.show(replace(snapshot(box, at=2000.0), events=events))
            assert "Xid" not in app.cards.plain


async def test_an_event_that_a_fault_tells_is_not_told_twice() -> None:
    fault = "GPU 0 has fallen off the bus."
    first = replace(snapshot(MIXED, at=5.0, fault=fault), events=(BoxEvent(4.0, Severity.ERROR, fault, 0),))
    async with Cards(first).run_test(size=(60, 30)) as pilot:
        assert pilot.app.query_one(BoxCards).plain.count(fault) == 1


async def test_a_card_that_answers_late_says_how_old_its_figures_are() -> None:
    hung = snapshot(MIXED, at=100.0, fault="GPU 0 does not answer.").readings[0]
    for size in ((60, 30), (60, 6), (80, 5), (130, 8)):
        for fault, words in (("GPU 0 does not answer.", "✗ 40 s old: GPU 0 does"), (None, "▲ 40 s")):
            late = replace(hung, at=60.0, fault=fault)
            shown = snapshot(MIXED, at=100.0)
            app = Cards(replace(shown, readings=(late, *shown.readings[1:])))
            async with app.run_test(size=size) as pilot:
                await pilot.pause()
                app.cards.choose(2)
                assert words in app.cards.plain
                figures = [style for line in app.cards.lines for text, style in line if "61 %" in text]
                assert "muted" in (figures[0] if fault is None else "muted")
