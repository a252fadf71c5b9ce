"""The panel: its feeds, its panes, its beginning and its end."""

import argparse
import asyncio
import signal
import time
from dataclasses import replace
from functools import partial, reduce
from operator import or_
from typing import ClassVar, Literal

from textual import on
from textual.binding import BindingType

from gpudeck.app import box_news, keymap, places, themes
from gpudeck.app.bench_acts import BenchActs
from gpudeck.app.commands.common import scope_from
from gpudeck.app.deck_app import INTERVAL_S, PanelSetup
from gpudeck.app.feeds import LatestSlot
from gpudeck.app.linger_acts import LingerActs
from gpudeck.app.log_acts import LogActs
from gpudeck.app.messages import BoxArrived, HostArrived, LogsArrived
from gpudeck.app.metrics_acts import MetricsActs
from gpudeck.app.programs import engine_program, model_roots
from gpudeck.app.schedule_acts import ScheduleActs
from gpudeck.app.unit_acts import LOOK_S
from gpudeck.services.box.sampler import Sampler
from gpudeck.services.box.source import open_source
from gpudeck.services.box.types import Demand, Severity, Snapshot
from gpudeck.services.engine.types import Runner
from gpudeck.services.errors import OperatorError
from gpudeck.services.host.sampler import HostSampler, open_host
from gpudeck.services.host.types import HostReading
from gpudeck.widgets.chat_input import ChatInput
from gpudeck.widgets.messages import DemandChanged, HostLooked, PlacementPreviewed

_DRAIN_S = 0.05  # between two looks at logs that grow
_REST_S = 0.3  # how long a snapshot waits for a pointer that carries a card
_HEALTH_BEATS = 3  # by then a snapshot that was asked for health has come


def setup_from(args: argparse.Namespace, *, ascii_only: bool) -> PanelSetup:
    """The setup that the command line names.  Raises OperatorError for a box that can not be read."""
    demo, scope = bool(args.demo), scope_from(args)
    source = open_source(demo=args.demo, box_file=args.box_file, loads=places.demo_loads() if demo else None)
    if demo or args.box_file:
        # A file that can not be read is told before the screen is taken; NVML is opened by the sampler's thread.
        source.open()
        source.close()

    def open_runner() -> Runner:
        if args.box_file:
            raise OperatorError("This is a recorded box: plans are judged, nothing is started.")
        from gpudeck.services.engine.choose import open_runner

        return open_runner(demo=demo, scope=scope)

    return PanelSetup(
        source=source,
        open_runner=open_runner,
        program=engine_program(demo=args.demo),
        model_roots=lambda: model_roots(demo=demo),
        demo=demo,
        reopen=not args.box_file,
        host=not demo and not args.box_file,
        ascii_only=ascii_only,
        box_words=_box_words(args),
    )


def _box_words(args: argparse.Namespace) -> tuple[str, ...]:
    """What another gpudeck is given to see the same box and engines."""
    named = (("--demo", args.demo), ("--box", args.box_file), ("--scope", args.scope))
    return tuple(f"{option}={value}" for option, value in named if value)


class Panel(MetricsActs, LogActs, ScheduleActs, LingerActs, BenchActs):
    """The application: what all its acts do (PlanActs, EngineActs, LogActs, ChatActs …), fed by the box's sampler."""

    TITLE = "gpudeck"
    BINDINGS: ClassVar[list[BindingType]] = keymap.BINDINGS

    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        self._box_slot: LatestSlot[Snapshot | OperatorError] = LatestSlot(self.post_message, BoxArrived)
        # The cards show what is always read; whoever shows more asks for it.
        self._sampler = Sampler(setup.source, self._box_slot.put, INTERVAL_S, demand=Demand.NOTHING)
        self._demands: dict[str, Demand] = {}
        self._draining = False  # whether waiting log lines will be taken
        self._box_waits = False  # a snapshot waits while a card is carried
        self._health_beats = 0  # snapshots that were waited for since the plan's cards were asked for their health

        self._host_slot: LatestSlot[HostReading] = LatestSlot(self.post_message, HostArrived)
        self._host_sampler = HostSampler(lambda: open_host(setup.model_roots()), self._host_slot.put)

    def on_mount(self) -> None:
        for theme in (themes.DARK, themes.LIGHT):
            self.register_theme(theme)
        self.theme = themes.DARK.name
        loop = asyncio.get_running_loop()
        # The line dropped, or the machine goes down: leave as with q.  Unhandled, SIGHUP leaves Textual spinning.
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, partial(self.exit, return_code=128 + number))
        # Everything that touches the machine begins after the first frame.
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.show()
        self.show_header()
        self._sampler.start()
        self.deck.host_line.display = self.setup.host
        self.engine_desk.open()
        self.set_interval(1.0, self._tick)
        self.set_interval(LOOK_S, self.look_at_units)

    def on_unmount(self) -> None:
        self._sampler.stop()
        self._host_sampler.stop()
        self.ask_desk.cancel()
        self.bench_desk.stop()
        self.engine_desk.close()

    @on(LogsArrived)
    def _logs_arrived(self) -> None:
        """Take the lines soon, and with them those of the next moment."""
        if not self._draining:
            self._draining = True
            self.set_timer(_DRAIN_S, self._drain)

    def _drain(self) -> None:
        self._draining = False
        if self.drain_logs():
            self._logs_arrived()

    def _tick(self) -> None:
        self.tend_starts(time.time())
        self.tend_metrics()
        snapshot = self.state.snapshot
        if snapshot is not None and time.time() - snapshot.at <= INTERVAL_S * 2:
            return
        self.show_header()
        if snapshot is not None:
            self.deck.show_box(self.state, time.time())

    @on(BoxArrived)
    def _box_arrived(self) -> None:
        if self.deck.board.carried:
            # The pointer comes first: the cards are drawn behind its next frame, or when it rests.
            self._box_waits = True
            self.set_timer(_REST_S, self._take_box)
        else:
            self._take_box()

    @on(PlacementPreviewed)
    def _frame_of_drag(self) -> None:
        if self._box_waits:
            self.call_after_refresh(self._take_box)

    def _take_box(self) -> None:
        self._box_waits = False
        value = self._box_slot.take()
        if value is None:
            return
        # With the snapshot, so that both make one frame.
        self.show_header()
        if isinstance(value, Snapshot):
            before = self.state
            state = replace(before, snapshot=value, trouble=None, grounds=before.grounds.with_snapshot(value))
            same = (
                state.box is before.box
                and state.used() == before.used()
                and state.events == before.events
                and state.grounds is before.grounds
            )
            self.change(state if same else self.judged(state))
            self._tell_news(before.snapshot, value)
            self._looked_at_plan(value)
        else:
            self.change(replace(self.state, trouble=str(value)))

    def _looked_at_plan(self, snapshot: Snapshot) -> None:
        """Read the health of a plan's cards no longer once it was told, or where none of them tells any."""
        if self._demands.get("plan"):
            told = any(reading.modes or reading.ecc or reading.rows for reading in snapshot.readings)
            self._health_beats = 0 if told else self._health_beats + 1
            if told or self._health_beats >= _HEALTH_BEATS:
                self._health_beats = 0
                self._demand_changed(DemandChanged("plan", Demand.NOTHING))

    def _tell_news(self, before: Snapshot | None, now: Snapshot) -> None:
        words: dict[Severity, Literal["information", "warning", "error"]] = {
            Severity.ERROR: "error",
            Severity.WARNING: "warning",
        }
        for severity, sentence in box_news.told(box_news.news(before, now)):
            self.say(sentence, words.get(severity, "information"))

    @on(DemandChanged)
    def _demand_changed(self, message: DemandChanged) -> None:
        """Read what the views in sight show, and no more."""
        self._demands[message.view] = message.demand
        self._sampler.demand = reduce(or_, self._demands.values())

    @on(HostLooked)
    def _host_looked(self, message: HostLooked) -> None:
        self._host_sampler.show(message.seen)

    @on(HostArrived)
    def _host_arrived(self) -> None:
        host = self._host_slot.take()
        if host is not None:
            self.change(replace(self.state, host=host))

    def action_pane(self, pane: str) -> None:
        self.deck.open_pane(pane)

    def action_maximize_pane(self) -> None:
        self.deck.toggle_maximized()

    def action_step_out(self) -> None:
        self.deck.step_out()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is offered only where letters are text."""
        if action == "step_out":
            return isinstance(self.focused, ChatInput)
        return super().check_action(action, parameters)

    def action_turn_links(self) -> None:
        self.deck.turn_links()

    def action_help(self) -> None:
        from gpudeck.widgets.help_page import HelpPage

        self.push_screen(HelpPage(self.deck.help_groups(keymap.BINDINGS), glyphs=self.glyphs))
