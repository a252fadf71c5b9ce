"""Measuring engines from the panel."""

import asyncio
from importlib import import_module
from pathlib import Path

from textual import on

from gpudeck.app import places
from gpudeck.app.bench_desk import BenchDesk
from gpudeck.app.check_acts import CheckActs
from gpudeck.app.deck_app import PanelSetup
from gpudeck.app.messages import BenchEnded, BenchStepped, ResultsArrived
from gpudeck.services.errors import OperatorError
from gpudeck.widgets.bench_page import BenchPage
from gpudeck.widgets.messages import BenchAsked, BenchStopAsked, ExportAsked


class BenchActs(CheckActs):
    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        self.bench_desk = BenchDesk(self.post_message, setup.box_words, places.bench_home(demo=setup.demo))
        self._kept = ""  # the run that ended last

    def action_bench(self) -> None:
        """Open the page, on the ready engine that the list's cursor stands on."""
        engine = self.state.engine
        self.push_screen(BenchPage(engine.unit.name if engine is not None and engine.ready else "", self.glyphs))
        self.bench_desk.load()

    @property
    def _page(self) -> BenchPage | None:
        return next((screen for screen in self.screen_stack if isinstance(screen, BenchPage)), None)

    @on(BenchAsked)
    def _bench_asked(self, message: BenchAsked) -> None:
        page = self._page
        if page is None:
            return
        try:
            self.bench_desk.run(message.words)
        except OperatorError as error:
            page.end(str(error), failed=True)
        else:
            page.begin()

    @on(BenchStopAsked)
    def _bench_stop_asked(self) -> None:
        self.bench_desk.stop()

    @on(BenchStepped)
    def _bench_stepped(self, message: BenchStepped) -> None:
        if self._page is not None:
            self._page.step(message.step)

    @on(BenchEnded)
    def _bench_ended(self, message: BenchEnded) -> None:
        self._kept = message.kept
        sentence = message.failure or f"Kept as {places.home_relative(message.kept)}."
        if self._page is not None:
            self._page.end(sentence, failed=bool(message.failure))
        elif message.failure:
            self.say(message.failure, "error")

    @on(ResultsArrived)
    async def _results_arrived(self, message: ResultsArrived) -> None:
        page = self._page
        if page is None:
            return
        report = await asyncio.to_thread(import_module, "gpudeck.services.bench.report")
        newest = [result for result in message.results if self._kept and Path(self._kept).stem == result.id]
        parts = [
            *(["\n".join(report.result_lines(newest[0]))] if newest else []),
            "\n".join(report.comparison_lines(message.results, plain=self.setup.ascii_only))
            or "Nothing was measured here yet.",
            *(["\n".join(message.troubles)] if message.troubles else []),
        ]
        page.show_results("\n\n".join(parts))

    @on(ExportAsked)
    async def _export_asked(self) -> None:
        export = await asyncio.to_thread(import_module, "gpudeck.services.bench.export")
        home = places.bench_home(demo=self.setup.demo)
        try:
            written = await asyncio.to_thread(export.write_all, home, Path.cwd())
        except OperatorError as error:
            self.say(str(error), "error")
        else:
            self.say(f"Written: {', '.join(places.home_relative(str(path)) for path in written)}.")
