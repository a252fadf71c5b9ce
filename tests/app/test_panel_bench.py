"""Measuring at the panel: a run, its progress, its end before its time, and what was measured so far."""

import json
from pathlib import Path

import pytest

from gpudeck.app import places
from gpudeck.widgets.bench_page import FIELDS
from tests.app.panels import COMPACT, WIDE, Desk, demo, panel
from tests.rigs.as_command import Gpudeck
from tests.rigs.at_the_panel import free_port

pytestmark = pytest.mark.panel


@pytest.fixture
def engines(gpudeck: Gpudeck) -> tuple[str, str]:
    """Two demo engines that are ready."""
    for name, *stages in (("pair", "1", "2"), ("alone", "0")):
        words = [word for stage in stages for word in ("--stage", stage)]
        more = ("--max-model-len", "2048", "--name", name, "--port", str(free_port()), "--yes", "--demo")
        assert gpudeck("install", "demo-llama-3.1-8b", *words, *more).code == 0
        assert gpudeck("start", name, "--demo").code == 0
    return "pair", "alone"


async def measure(desk: Desk, **fields: str) -> None:
    """Open the page, fill these fields and begin."""
    await desk.press("3")
    await desk.is_("pair", "ready")
    await desk.is_("alone", "ready")
    await desk.press("M")
    await desk.sees("Measure")
    for number, field in enumerate(FIELDS):
        text = fields.get(field.label.split()[-1])
        if text is not None:
            await desk.paste(text)
        if number < len(FIELDS) - 1:
            await desk.press("tab")
    await desk.press("enter")


@pytest.mark.parametrize("size", [WIDE, COMPACT])
async def test_a_run_over_two_engines_is_kept_and_compared(
    home: Path, engines: tuple[str, str], size: tuple[int, int]
) -> None:
    async with panel(demo(), size) as desk:
        await measure(desk, Engines=" ".join(engines), out="8", once="1,2")
        await desk.sees("level 1 of 2")
        await desk.sees("Kept as")
        await desk.sees("PP2 on 2 × A100-SXM4-40GB (1,2) + alone")
        kept = list(places.bench_home(demo=True).glob("*.json"))
        assert len(kept) == 1
        document = json.loads(kept[0].read_text())
        assert [target["name"] for target in document["targets"]] == list(engines)
        assert [level["completed"] for level in document["levels"]] == [8, 8]
        await desk.press("escape")
        await desk.until(lambda: desk.panel.screen is desk.panel.deck, "page gone")
        # Opened again, it shows what was measured.
        await desk.press("M")
        await desk.sees("closed loop, seed 0")


async def test_a_run_that_is_ended_keeps_what_has_come(home: Path, engines: tuple[str, str]) -> None:
    async with panel(demo()) as desk:
        await measure(desk, Engines=engines[1], out="400", once="1,2,4")
        await desk.sees("level 1 of 3: 1")
        await desk.until(lambda: " 0/8" not in desk.shown and "/8" in desk.shown, "a request that ended")
        await desk.press("escape")
        await desk.sees("It was cancelled")
        assert not desk.panel.bench_desk.running


async def test_what_is_wrong_in_the_form_is_told_there(home: Path, engines: tuple[str, str]) -> None:
    async with panel(demo()) as desk:
        await measure(desk, Engines="nobody")
        await desk.sees("No engine is called nobody here")
        await desk.press("tab", "tab", "tab", "tab")
        await desk.press("escape")
        await measure(desk, once="four")
        await desk.sees("four is no number of requests at once")


async def test_results_are_written_as_files(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engines: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    async with panel(demo()) as desk:
        await measure(desk, Engines=engines[0], out="8", once="1")
        await desk.sees("Kept as")
        await desk.press("ctrl+e")
        await desk.hears("Written:")
    assert {path.name for path in tmp_path.glob("gpudeck-bench.*")} == {
        f"gpudeck-bench.{kind}" for kind in ("csv", "json", "md")
    }
