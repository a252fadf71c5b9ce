"""The engines' own counts: asked for only while the engine list is in view, of engines that are ready."""

import asyncio
import time
from functools import partial
from importlib import import_module

from textual import on

from gpudeck.app import state as states
from gpudeck.app.deck_app import DeckApp, PanelSetup
from gpudeck.services.errors import OperatorError
from gpudeck.services.metrics.window import Window
from gpudeck.services.plan.command import keeps_quiet
from gpudeck.widgets.messages import EnginesLooked

_LOGS_IT = "Its own counts are not asked for: this engine logs every request, also those of a panel that looks at it."
EVERY_S = 2.0  # a reading of /metrics is some 30 KB of text


class MetricsActs(DeckApp):
    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        self._looked = False
        self._windows: dict[str, tuple[int | None, Window]] = {}  # with the main pid that they belong to
        self._asked_of: dict[str, int | None] = {}  # who is being asked now

    @on(EnginesLooked)
    def _engines_looked(self, message: EnginesLooked) -> None:
        self._looked = message.seen
        self.tend_metrics()

    def tend_metrics(self) -> None:
        """Ask the engines that are ready, and no longer those that are not or that nobody sees."""
        wanted = {
            name: info.unit.main_pid
            for name, info in self.state.engines.items()
            if self._looked and info.ready and info.unit.alive and info.unit.spec is not None
        }
        for name in self._asked_of.keys() - wanted.keys():
            del self._asked_of[name]
            self.workers.cancel_group(self, f"metrics-{name}")
            if name not in self.state.engines:
                self._windows.pop(name, None)
        for name, run in wanted.items():
            if name not in self._asked_of or self._asked_of[name] != run:
                self._asked_of[name] = run
                self.turn_worker(f"metrics-{name}", partial(self._measure, name, run))

    async def _measure(self, name: str, run: int | None) -> None:
        info = self.state.engines.get(name)
        if info is None or info.unit.spec is None:
            return
        if not keeps_quiet(info.unit.spec):
            self._take(name, run, rates=None, uncounted=_LOGS_IT)
            return
        options = info.unit.spec.options
        client_module = await asyncio.to_thread(import_module, "gpudeck.services.http.client")
        address = await asyncio.to_thread(import_module, "gpudeck.services.http.address")
        # The parser takes longer to import than a frame lasts.
        reading = await asyncio.to_thread(import_module, "gpudeck.services.metrics.reading")
        known, window = self._windows.get(name, (run, Window()))
        if known != run:
            window = Window()
        self._windows[name] = run, window
        async with client_module.VllmClient(address.Address.of_engine(options.host, options.port).url) as client:
            while True:
                try:
                    text = await client.metrics()
                    sample = await asyncio.to_thread(reading.read_sample, text, time.monotonic())
                except OperatorError as error:
                    self._take(name, run, rates=None, uncounted=str(error))
                else:
                    self._take(name, run, rates=window.add(sample), uncounted="")
                await asyncio.sleep(EVERY_S)

    def _take(self, name: str, run: int | None, **changes: object) -> None:
        info = self.state.engines.get(name)
        if info is not None and info.ready and info.unit.main_pid == run:
            self.change(states.with_engine(self.state, name, **changes))
