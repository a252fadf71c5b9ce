"""The running panel that the pictures are taken of, and what a person does at it."""

import asyncio
import os
import shutil
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from textual.geometry import Offset
from textual.pilot import Pilot

from gpudeck.app.panel import Panel, setup_from
from gpudeck.services.engine.choose import DEMO_PREFIX
from gpudeck.services.engine.embedded import EmbeddedRunner
from gpudeck.services.plan.dragging import Target
from gpudeck.services.simulator.models import make_models
from gpudeck.widgets.board.surface import Surface
from gpudeck.widgets.model_picker import ModelPicker
from gpudeck.widgets.model_rows import ModelRows
from gpudeck.widgets.unit_preview import UnitPreview

HOME = Path("/tmp/gpudeck")  # always the same, since what lies in it is named on the pictures
PATIENCE_S = 60.0
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Stage:
    """A panel under way, driven through Textual's pilot."""

    panel: Panel
    pilot: Pilot[int]

    async def until(self, ready: Callable[[], object], what: str) -> None:
        """Wait for something to be so; RuntimeError after a minute."""
        end = time.monotonic() + PATIENCE_S
        while not ready():
            if time.monotonic() > end:
                said = "; ".join(notice.message for notice in self.panel._notifications)
                raise RuntimeError(f"no {what} after {PATIENCE_S:.0f} s. {said}")
            await asyncio.sleep(POLL_S)
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        await self.press(*("space" if letter == " " else letter for letter in text))

    async def seconds(self, count: float) -> None:
        """Let the panel live for a while: bars move, readings come."""
        await asyncio.sleep(count)
        await self.pilot.pause()

    async def choose_model(self, name: str) -> None:
        await self.press("m")
        await self.until(lambda: isinstance(self.panel.screen, ModelPicker), "model picker")
        await self.type(name)
        await self.until(lambda: name in (self.panel.screen.query_one(ModelRows).chosen or ""), f"model {name}")
        await self.press("enter")
        await self.until(lambda: self._model_name() == name, f"{name} on the board")

    def _model_name(self) -> str:
        model = self.panel.state.draft.model
        return model.name if model else ""

    async def start(self) -> None:
        """s, and Enter on the unit; then until the engine answers."""
        await self.press("s")
        await self.until(lambda: isinstance(self.panel.screen, UnitPreview), "unit")
        await self.press("enter")
        await self.until(lambda: self.panel.state.engine and self.panel.state.engine.ready, "ready engine")

    async def ask(self, question: str) -> None:
        """Ask in the chat, which has the focus, and wait for the answer to begin."""
        await self.type(question)
        await self.press("enter")
        await self.until(lambda: self.panel.deck.chat.answering, "answer begun")

    async def hear_out(self) -> None:
        """Wait for the end of the answer that is coming, where one is."""
        await self.until(lambda: not self.panel.deck.chat.answering, "answer complete")

    async def until_busy(self) -> None:
        """Wait until the readings tell that an engine works."""

        def busy() -> bool:
            snapshot = self.panel.state.snapshot
            return snapshot is not None and any((card.utilization_percent or 0) > 50 for card in snapshot.readings)

        await self.until(busy, "busy card")

    async def carry(self, gpu: int, target: Target) -> None:
        """Drag a card of the board with the mouse and hold it over a target."""
        board = self.panel.deck.board
        surface = board.query_one(Surface)
        start = self._place(lambda point: surface.card_at(point) == gpu)
        await self.pilot.mouse_down(offset=start)
        await self.pilot.hover(offset=start + Offset(2, 0))
        await self.until(lambda: board.drag is not None, f"card {gpu} in the air")
        over = self._place(lambda point: surface.target_at(point) == target)
        await self.pilot.hover(offset=over)
        await self.until(lambda: board.drag is not None and board.drag.target == target, f"card {gpu} over {target}")
        await self.seconds(1.0)  # every other target has been judged by then

    async def drop(self) -> None:
        """Let the button go where the pointer is."""
        await self.pilot.mouse_up(offset=self.panel.mouse_position)
        await self.until(lambda: self.panel.deck.board.drag is None, "card down")

    def _place(self, fits: Callable[[Offset], bool]) -> Offset:
        """A point of the board that fits, in the midst of all that do."""
        region = self.panel.deck.board.region
        points = [Offset(x, y) for y in range(region.y, region.bottom) for x in range(region.x, region.right)]
        found = [point for point in points if fits(point)]
        return found[len(found) // 2]

    async def clear_notices(self) -> None:
        self.panel.clear_notifications()
        await self.pilot.pause()


@asynccontextmanager
async def on_stage(columns: int, rows: int, box: str = "mixed", *, ascii_only: bool = False) -> AsyncIterator[Stage]:
    """The panel on a demo box, with engines and models of its own in `HOME`; all is gone afterwards."""
    try:
        HOME.mkdir()
    except FileExistsError:
        raise RuntimeError(f"{HOME} is there already, from pictures that were cut short: remove it.") from None
    folders = {"HOME": HOME, "XDG_CACHE_HOME": HOME / "cache", "XDG_STATE_HOME": HOME / "state"}
    before = {name: os.environ.get(name) for name in folders}
    os.environ.update({name: str(folder) for name, folder in folders.items()})

    def runner() -> EmbeddedRunner:
        return EmbeddedRunner(DEMO_PREFIX, "no systemd here")

    def models() -> tuple[Path, ...]:
        make_models(HOME / "models")
        return (HOME / "models",)

    try:
        setup = setup_from(Namespace(demo=box, box_file=None, scope=None), ascii_only=ascii_only)
        panel = Panel(replace(setup, open_runner=runner, model_roots=models))
        async with panel.run_test(size=(columns, rows), notifications=True) as pilot:
            stage = Stage(panel, pilot)
            await stage.until(lambda: panel.state.box and "looking" not in panel.state.runner, "box and runner")
            yield stage
    finally:
        left = runner()
        for engine in left.engines():
            left.remove(engine.name)
        left.close()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        shutil.rmtree(HOME)
