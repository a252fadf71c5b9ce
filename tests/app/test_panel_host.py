"""The machine's own figures in the panel: beside real cards, and read only while they are seen."""

import threading

import pytest

from tests.app.panels import COMPACT, demo, panel, real
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.services.box.boxes import busy, pair

pytestmark = pytest.mark.panel


async def test_the_machine_stands_below_its_cards(fake_nvml: FakeNvml) -> None:
    fake_nvml(pair(), (busy(0), busy(1)))
    async with panel(real()) as desk:
        await desk.sees("host ")
        await desk.sees("memory ")
        assert desk.panel.state.host is not None


async def test_what_nobody_sees_is_not_read(fake_nvml: FakeNvml) -> None:
    fake_nvml(pair(), (busy(0), busy(1)))
    async with panel(real(), COMPACT) as desk:  # one pane at a time, the board first
        await desk.pilot.pause()
        assert "gpudeck-host" not in {thread.name for thread in threading.enumerate()}
        assert desk.panel.state.host is None
        await desk.press("1")
        await desk.sees("host ")
        await desk.until(lambda: desk.panel.state.host, "a reading of the machine")


async def test_a_simulated_box_has_no_machine_around_it() -> None:
    async with panel(demo()) as desk:
        await desk.press("1")
        await desk.sees("4090")
        assert not desk.panel.deck.host_line.display
        assert desk.panel.state.host is None
