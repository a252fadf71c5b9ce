"""An engine with an API key at the panel: typed unseen, written for the engine alone, and used by the panel itself."""

from pathlib import Path

import pytest

from gpudeck.app.panel import Panel
from gpudeck.services.engine import choose
from tests.app.panels import demo, panel
from tests.rigs.at_the_panel import answered, free_port

pytestmark = pytest.mark.panel
LLAMA = "demo-llama-3.1-8b"
KEY = "k-hush-4711"


async def test_a_key_is_never_shown_and_the_chat_carries_it(home: Path) -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.set_option("--port", str(free_port()))
        await desk.set_option("--host", "0.0.0.0")
        await desk.place((1,))
        assert "open-to-network" in {found.rule for found in desk.panel.state.judgement.findings}
        await desk.press("a")
        await desk.sees("API key")
        await desk.press("escape")
        await desk.set_option("API key", KEY)
        assert "open-to-network" not in {found.rule for found in desk.panel.state.judgement.findings}
        await desk.press("s")
        await desk.sees("What will run")
        await desk.sees("VLLM_API_KEY into")
        assert KEY not in desk.shown
        await desk.press("enter")
        await desk.is_(LLAMA, "ready")
        await desk.hears(f"{LLAMA} is ready.")
        assert not any("API key" in notice for notice in desk.notices)
        assert not desk.panel.state.draft.secrets
        await desk.press("c")
        await desk.write("what are you?")
        await desk.press("enter")
        await desk.until(lambda: answered(desk.shown), "answer")
        found = [path for path in home.rglob("*") if path.is_file() and KEY in path.read_text(errors="replace")]
        assert [path.name for path in found] == ["secrets.env"]


async def test_a_key_that_changed_behind_the_panels_back_is_one_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with panel(demo()) as desk:
        await desk.choose_model(LLAMA)
        await desk.set_option("--port", str(free_port()))
        await desk.set_option("API key", KEY)
        await desk.place((1,))
        monkeypatch.setattr(desk.panel.engine_desk, "api_key", lambda _name: None)
        await desk.start()
        await desk.is_(LLAMA, "ready")
        await desk.hears("wants an API key (401): set VLLM_API_KEY")
        # The same plan with another key: only the file of keys changes, and that is asked for as well.
        await desk.set_option("API key", "another")
        await desk.press("s")
        await desk.sees("VLLM_API_KEY into")
        await desk.press("enter")
        await desk.until(lambda: secrets() == "another", "the other key")
        await desk.is_(LLAMA, "ready")


async def test_a_crash_report_tells_no_values(home: Path) -> None:
    app = Panel(demo())

    def breaks() -> None:
        typed = KEY
        raise RuntimeError(f"a defect of {len(typed)}")

    try:
        breaks()
    except RuntimeError:
        app._fatal_error()
    [report] = app._exit_renderables
    shown = "".join(segment.text for segment in app.console.render(report))
    assert "a defect of 11" in shown
    assert "typed = KEY" in shown  # the line that broke, and not what it worked on
    assert KEY not in shown


def secrets() -> str:
    runner = choose.open_runner(demo=True)
    key = runner.api_key(LLAMA)
    runner.close()
    return key or ""
