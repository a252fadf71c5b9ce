"""The offer to let engines outlive the login: made once, and what comes of it said."""

from pathlib import Path

import pytest

from gpudeck.services.engine import choose
from gpudeck.services.engine.embedded import EmbeddedRunner
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineOptions
from tests.app.panels import COMPACT, WIDE, panel, real
from tests.rigs.at_the_panel import free_port
from tests.rigs.small_engines import engine

pytestmark = pytest.mark.panel
OFFER = "Engines that outlive your login?"


@pytest.fixture
def asked(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which answers logind gives, the last first; the runner's own engines need no lingering."""
    answers: list[str] = []

    def let(_runner: EmbeddedRunner) -> None:
        if why := answers.pop():
            raise OperatorError(why)

    monkeypatch.setattr(EmbeddedRunner, "outlives_login", property(lambda _runner: False))
    monkeypatch.setattr(EmbeddedRunner, "let_outlive_login", let)
    runner = choose.open_runner()
    model = tmp_path / "model"
    model.mkdir()
    runner.install(
        engine(tmp_path, "mine", "exec sleep 1000", model=str(model), options=EngineOptions(port=free_port()))
    )
    return answers


@pytest.mark.parametrize("size", [WIDE, COMPACT], ids=["wide", "compact"])
@pytest.mark.parametrize(
    ("answer", "said"),
    [("", "Your engines go on after you have logged out."), ("have root call `x`", "have root call `x`")],
    ids=["granted", "refused"],
)
async def test_it_is_offered_once_and_its_end_is_told(
    asked: list[str], size: tuple[int, int], answer: str, said: str
) -> None:
    asked.append(answer)
    async with panel(real(), size) as desk:
        await desk.is_("mine", "stopped")
        await desk.press("3", "s")
        await desk.sees(OFFER)
        await desk.press("y")
        await desk.hears(said)
        assert asked == []
        await desk.press("3", "x")
        await desk.sees("stop mine")
        await desk.press("y")
        await desk.is_("mine", "stopped")
        await desk.press("3", "s")
        await desk.is_("mine", "starting")
        assert OFFER not in desk.shown
