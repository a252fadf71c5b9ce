"""What every part of the panel stands on: the state, the one way to change it, and the screen that shows it."""

import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from textual.app import App
from textual.driver import Driver
from textual.filter import LineFilter
from textual.screen import Screen

from gpudeck.app.ask_desk import AskDesk
from gpudeck.app.engine_desk import EngineDesk
from gpudeck.app.grounds_desk import GroundsDesk
from gpudeck.app.model_desk import ModelDesk
from gpudeck.app.programs import EngineProgram
from gpudeck.app.screens.deck import Deck
from gpudeck.app.state import DeckState
from gpudeck.services.box.types import BoxSource
from gpudeck.services.engine.types import Runner
from gpudeck.services.text import printable
from gpudeck.widgets.ascii_only import AsciiOnly
from gpudeck.widgets.glyphs import Glyphs

INTERVAL_S = 1.0  # between two snapshots


@dataclass(frozen=True, slots=True)
class PanelSetup:
    """What a panel is opened with."""

    source: BoxSource
    open_runner: Callable[[], Runner]
    program: EngineProgram
    model_roots: Callable[[], Sequence[Path]]
    demo: bool = False
    reopen: bool = False  # whether a runner that can not be had at first may be had later
    host: bool = False  # whether the box is the machine itself, whose own figures belong beside its cards
    ascii_only: bool = False
    box_words: tuple[str, ...] = ()  # what names this box and scope to a command: ("--demo=mixed",)


# How long a notice stands: long enough to be read twice, and what asks for an act longer than what only tells.
_NOTICE_S = {"information": 5.0, "warning": 10.0, "error": 20.0}


class DeckApp(App[int]):
    """The state is one DeckState; `change` is the only way from one to the next."""

    # Textual loads a screen's own CSS when it is pushed, and the default screen never is.
    CSS_PATH = "screens/deck.tcss"

    def __init__(self, setup: PanelSetup) -> None:
        super().__init__()
        self.setup = setup
        self.state = DeckState(program=setup.program)
        self.glyphs = Glyphs.ascii() if setup.ascii_only else Glyphs.unicode()
        self.deck = Deck(self.glyphs, ascii_only=setup.ascii_only)
        self.engine_desk = EngineDesk(setup.open_runner, self.post_message, reopen=setup.reopen)
        self.ask_desk = AskDesk(self.post_message)
        self.grounds_desk = GroundsDesk(self.post_message)
        self.model_desk = ModelDesk(setup.model_roots, self.post_message)

    def get_driver_class(self) -> type[Driver]:
        """Textual's own choice; on a Unix terminal one that sends less."""
        chosen = super().get_driver_class()
        from textual.drivers.linux_driver import LinuxDriver

        if chosen is not LinuxDriver:
            return chosen
        from gpudeck.app.lean_driver import LeanDriver

        return LeanDriver

    def _fatal_error(self) -> None:
        """Report a defect without the values of variables, which Textual would show: a key may be among them."""
        from rich.segment import Segments
        from rich.traceback import Traceback

        self.bell()
        report = Traceback(show_locals=False, width=None)
        self._exit_renderables.append(Segments(self.console.render(report, self.console.options)))
        self._close_messages_no_wait()

    def on_resize(self) -> None:
        """A terminal of another size shows what it likes until it is drawn anew."""
        self._forget_screen()

    def action_redraw(self) -> None:
        """Draw every cell: another program may have written over them (wall, a kernel's message)."""
        self._forget_screen()
        self.screen.refresh(layout=True)

    def _forget_screen(self) -> None:
        from gpudeck.app.lean_driver import LeanDriver

        if isinstance(self._driver, LeanDriver):
            self._driver.forget()

    def get_line_filters(self) -> Sequence[LineFilter]:
        own = [AsciiOnly()] if self.setup.ascii_only else []
        return [*super().get_line_filters(), *own]

    def get_default_screen(self) -> Screen[None]:
        return self.deck

    def turn_worker(self, group: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do this in the background instead of what the group did.

        Handed on as a function: a worker that the next one ends before it began would leave a coroutine nobody awaited.
        """
        # mypy finds no result type that fits all three forms of Textual's WorkType.
        self.run_worker(work, group=group, exclusive=True, exit_on_error=False)  # type: ignore[arg-type]

    def change(self, state: DeckState) -> None:
        """Take a new state and show what differs."""
        self.state = state
        self.show()

    def show(self) -> None:
        if self.deck.is_mounted:
            self.deck.show(self.state, time.time())

    def show_header(self) -> None:
        self.deck.show_header(self.state, f"{datetime.now().astimezone():%H:%M:%S}", INTERVAL_S)

    def refuse(self, sentence: str) -> None:
        """Say why an act was refused, and keep it on the screen until the next act; it may hold foreign text."""
        self.change(replace(self.state, refusal=printable(sentence)))
        self.say(sentence, "error")

    def forget_refusal(self) -> None:
        """The next act begins."""
        if self.state.refusal:
            self.change(replace(self.state, refusal=""))

    def say(self, sentence: str, severity: Literal["information", "warning", "error"] = "information") -> None:
        """A notice; the sentence may hold foreign text.  One that is up already is not put up again below itself."""
        told = printable(sentence)
        for same in [one for one in self._notifications if one.message == told]:
            self._unnotify(same, refresh=False)
        self.notify(told, severity=severity, markup=False, timeout=_NOTICE_S[severity])
