"""The machine's own figures beside its cards."""

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.message import Message

from gpudeck.services.box.types import GIB, Accelerator
from gpudeck.services.host.judge import concerns
from gpudeck.services.host.types import HostReading
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.host_line import MOST_ROWS, HostLine, host_facts
from gpudeck.widgets.messages import HostLooked
from tests.services.host.hosts import FINE, host


class Hosts(App[None]):
    def __init__(self, glyphs: Glyphs | None = None) -> None:
        super().__init__()
        self.line = HostLine(glyphs=glyphs)
        self.told: list[bool] = []

    def compose(self) -> ComposeResult:
        yield self.line

    def on_host_looked(self, message: Message) -> None:
        assert isinstance(message, HostLooked)
        self.told.append(message.seen)

    def look_at(self, reading: HostReading) -> None:
        self.line.show(reading, concerns(reading, 8))


async def test_figures_stand_on_whole_rows_the_most_telling_first() -> None:
    app = Hosts()
    async with app.run_test(size=(100, 10)) as pilot:
        app.look_at(FINE)
        await pilot.pause()
        first, second = app.line.plain.splitlines()
        assert first.startswith("host  CPU 20 % of 128 · load 20.0 · memory 400 GiB of 512 GiB free · swap 1 GiB used")
        assert second == "      models 900 GiB free · vLLM cache 50 GiB free · /dev/shm 250 GiB free"
        assert app.line.size.height == 2


async def test_a_threshold_that_is_passed_is_a_sentence_and_room_is_kept_for_the_cards() -> None:
    app = Hosts()
    suffering = host(memory_available_bytes=GIB, cpu_share=0.97, open_files=1024, load=(1.0, 500.0, 1.0))
    async with app.run_test(size=(80, 20)) as pilot:
        app.look_at(suffering)
        await pilot.pause()
        assert "▲ Only 1 GiB of 512 GiB memory are free" in app.line.plain
        assert app.line.size.height == MOST_ROWS


async def test_another_makers_card_is_named() -> None:
    app = Hosts()
    async with app.run_test(size=(160, 20)) as pilot:
        app.look_at(host(accelerators=(Accelerator("0000:c1:00.0", "AMD", "Instinct MI300X"),)))
        await pilot.pause()
        assert "· AMD Instinct MI300X at 0000:c1:00.0 is out of scope" in app.line.plain


@pytest.mark.parametrize("width", [24, 40, 84, 200])
async def test_nothing_is_wider_than_the_line(width: int) -> None:
    app = Hosts()
    async with app.run_test(size=(width, 20)) as pilot:
        app.look_at(host(memory_available_bytes=GIB))
        await pilot.pause()
        assert all(cell_len(row) <= width for row in app.line.plain.splitlines())


async def test_it_says_when_it_is_seen_and_when_not() -> None:
    app = Hosts(Glyphs.ascii())
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        assert app.told == [True]
        app.line.display = False
        await pilot.pause()
        assert app.told == [True, False]
        app.line.display = True
        await pilot.pause()
        assert app.told == [True, False, True]
        app.look_at(FINE)
        assert app.line.plain.isascii()


def test_what_is_not_told_is_left_out() -> None:
    assert host_facts(HostReading(at=0.0, memory_total_bytes=GIB, memory_available_bytes=GIB)) == [
        "memory 1 GiB of 1 GiB free"
    ]
