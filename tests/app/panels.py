"""The real panel under Textual's Pilot: what an operator presses, and what stands on the screen."""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from textual import events
from textual.pilot import Pilot
from textual.widgets._toast import Toast

from gpudeck.app.deck_app import PanelSetup
from gpudeck.app.panel import Panel, setup_from
from gpudeck.widgets.option_fields import FIELDS

WIDE = (160, 50)
COMPACT = (80, 24)


@dataclass
class Desk:
    """An operator before an open panel."""

    panel: Panel
    pilot: Pilot[int]

    @property
    def shown(self) -> str:
        """What stands on the screen, line by line."""
        return "\n".join(
            "".join(segment.text for segment in strip) for strip in self.panel.screen._compositor.render_strips()
        )

    @property
    def notices(self) -> list[str]:
        """What the notices said that are still up, oldest first."""
        return [str(toast._notification.message) for toast in self.panel.screen.query(Toast)]

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def write(self, text: str) -> None:
        await self.pilot.press(*("space" if letter == " " else letter for letter in text))

    async def paste(self, text: str) -> None:
        """Text at once, as a terminal hands over what was pasted."""
        assert self.panel.focused is not None
        self.panel.focused.post_message(events.Paste(text))
        await self.pilot.pause()

    async def until(self, look: Callable[[], object], what: str, seconds: float = 20) -> None:
        """Wait until `look` gives something true; fail with what stands on the screen after `seconds`."""
        end = time.monotonic() + seconds
        while not look():
            if self.panel._exception is not None:
                raise self.panel._exception
            assert time.monotonic() < end, f"no {what} after {seconds} s:\n{self.shown}"
            await self.pilot.pause(0.02)

    async def sees(self, words: str, seconds: float = 20) -> None:
        await self.until(lambda: words in self.shown, f"“{words}” on the screen", seconds)

    async def hears(self, words: str, seconds: float = 20) -> None:
        """Wait for a notice; on a small screen it may be wrapped, and so it is not looked for there."""
        await self.until(lambda: any(words in notice for notice in self.notices), f"notice “{words}”", seconds)

    # -- what an operator does, in the panel's words

    async def choose_model(self, name: str) -> None:
        await self.press("m")
        await self.sees(name)
        await self.paste(name)
        await self.press("enter")
        await self.until(
            lambda: self.panel.state.draft.model is not None and self.panel.state.draft.model.name == name, name
        )

    async def set_option(self, label: str, text: str) -> None:
        """Fill one field of the options form."""
        await self.press("a")
        await self.sees("--port")
        await self.press(*["tab"] * [field.label for field in FIELDS].index(label), "ctrl+u")
        await self.paste(text)
        await self.press("enter")
        await self.until(lambda: self.panel.screen is self.panel.deck, "form gone")

    async def place(self, *stages: tuple[int, ...]) -> None:
        """Put these cards on an empty board by keys alone, stage by stage."""
        board = self.panel.deck.board
        await self.press("2")
        for number, stage in enumerate(stages):
            for gpu in stage:
                while board._chosen not in board._pool_cards():
                    await self.press("left")
                while board._chosen != gpu:
                    await self.press("down" if board._chosen < gpu else "up")
                await self.press("space")
                # Past the gap before each stage and each stage, to the gap at the end or into the last stage.
                await self.press(*["right"] * (2 * number + (1 if gpu == stage[0] else 2)), "space")
        await self.until(lambda: self.panel.state.draft.placement.stages == stages, f"cards on {stages}")

    async def start(self) -> None:
        """Start what is on the board, its unit shown and approved."""
        await self.press("s")
        await self.sees("What will run")
        await self.press("enter")

    def word(self, name: str) -> str:
        info = self.panel.state.engines.get(name)
        return info.word if info else "gone"

    async def is_(self, name: str, word: str, seconds: float = 30) -> None:
        """Wait for an engine's state."""
        await self.until(lambda: self.word(name) == word, f"{name} {word}", seconds)


@asynccontextmanager
async def panel(setup: PanelSetup, size: tuple[int, int] = WIDE) -> AsyncIterator[Desk]:
    """A panel on its own, looked at once its runner is open and its box is read, or there is word why not."""
    app = Panel(setup)
    async with app.run_test(size=size, notifications=True) as pilot:
        desk = Desk(app, pilot)
        await desk.until(lambda: app.state.runner != "looking for systemd", "runner")
        await desk.until(lambda: app.state.snapshot or app.state.trouble, "box")
        yield desk
        # Left as an operator leaves it: a run_test() that just ends takes the widgets from under what is still told.
        app.exit()
        end = time.monotonic() + 20
        while app.is_running and time.monotonic() < end:
            await asyncio.sleep(0.01)


def demo(box: str = "mixed") -> PanelSetup:
    """What `gpudeck --demo` opens the panel with."""
    return setup_from(argparse.Namespace(demo=box, box_file=None, scope=None), ascii_only=False)


def real() -> PanelSetup:
    """What `gpudeck` opens the panel with."""
    return setup_from(argparse.Namespace(demo=None, box_file=None, scope=None), ascii_only=False)
