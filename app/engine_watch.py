"""What engines do by themselves: their states by signal, their phases from the log, their readiness from the port."""

import asyncio
import time
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from importlib import import_module

from textual import on

from gpudeck.app import state as states
from gpudeck.app.deck_app import PanelSetup
from gpudeck.app.failures import failure_of
from gpudeck.app.messages import (
    ActBegan,
    ActEnded,
    RunnerFailed,
    RunnerOpened,
    UnitChanged,
    UnitsArrived,
)
from gpudeck.app.start_watch import StartWatch
from gpudeck.app.state import DeckState
from gpudeck.services.engine.ending import how_it_ended
from gpudeck.services.engine.listening import answers_itself
from gpudeck.services.engine.phases import PhaseTracker
from gpudeck.services.engine.types import UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.widgets.messages import EngineHighlighted, EngineSelected

_LINES_AT_ONCE = 1_000  # some ten milliseconds' work, between two of which keys are answered
_LAST_WORDS_S = 0.5  # by which an engine's log may come after its end


class EngineWatch(StartWatch):
    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        self._trackers: dict[str, PhaseTracker] = {}
        self._runs: dict[str, int | None] = {}  # the main pid whose log is being read
        self._in_log: str | None = None  # the engine whose lines stand in the log pane
        self._begun: set[str] = set()  # started; how that went is told by the units that arrive next
        self._starts: set[str] = set()  # started from here: the log is shown once the start was taken on
        self._found: frozenset[int] | None = None  # the main pids that ran when the panel was opened
        self._served: set[str] = set()  # answered in the run that goes on, or that ended and was not told yet
        self._crashing: set[str] = set()  # crashed before they were ready, which was told
        self._asked: dict[str, int] = {}  # the main pid that is being asked, or was, whether it answers

    # -- what the desk reports

    @on(RunnerOpened)
    def _runner_opened(self, message: RunnerOpened) -> None:
        self.change(replace(self.state, runner=message.description, runner_trouble=None))
        self.look_for_key()
        self.show_header()

    @on(RunnerFailed)
    def _runner_failed(self, message: RunnerFailed) -> None:
        self.change(replace(self.state, runner="no engines", runner_trouble=message.sentence))
        self.show_header()
        self.say(message.sentence, "warning")

    @on(UnitsArrived)
    def _units_arrived(self, message: UnitsArrived) -> None:
        if self._found is None:
            self._found = frozenset(unit.main_pid for unit in message.units if unit.main_pid is not None)
        begun, self._begun = self._begun, set()
        self._take_units(states.with_units(self.state, message.units), begun)

    @on(UnitChanged)
    def _unit_changed(self, message: UnitChanged) -> None:
        self._take_units(states.with_unit(self.state, message.unit))

    def _take_units(self, state: DeckState, begun: Collection[str] = ()) -> None:
        """Show what changed of the engines; one that failed is told, also where it had failed before it was `begun`."""
        before = self.state.engines
        self.change(state)
        for name, info in state.engines.items():
            known = before.get(name)
            if known is None or known.busy:
                continue
            died = known.ready and known.unit.active == "active" and not info.unit.alive
            if died or _started_again(known.unit, info.unit):
                # The last words of its log are still on their way.
                # Between its end and the next try it is ready no more.
                served = known.ready or name in self._served
                self._served.discard(name)
                told = partial(self._tell_end, name, info.unit, self._trackers.get(name), served=served)
                self.set_timer(_LAST_WORDS_S, told)
            if info.unit.active != "failed" or died:
                continue
            if known.unit.active != "failed" or name in begun:
                self._begun.discard(name)
                found = failure_of(state, info)
                why = f"{found.meaning} {found.fix or ''}" if found else info.why
                self.say(f"{name} failed. {why}".rstrip(), "error")
        self._tend_engines()

    def _tell_end(self, name: str, unit: UnitState, tracker: PhaseTracker | None, *, served: bool) -> None:
        """Tell of a run that ended by itself; of one that never gets ready and is tried again and again, once."""
        if not served and name in self._crashing:
            return
        if not served:
            self._crashing.add(name)
        line = tracker.standing.decisive_line if tracker is not None else None
        when = "while it served" if served else "before it was ready"
        then = " and is started again" if unit.alive else ""
        self.say(f"{name} ended {when}{then}. {line or how_it_ended(unit)}".rstrip(), "error")

    @on(ActBegan)
    def _act_began(self, message: ActBegan) -> None:
        self.forget_refusal()
        self._crashing.discard(message.name)
        self._served.discard(message.name)
        self.change(states.with_engine(self.state, message.name, busy=message.doing))

    @on(ActEnded)
    def _act_ended(self, message: ActEnded) -> None:
        self.change(states.with_engine(self.state, message.name, busy=None))
        started = message.name in self._starts
        self._starts.discard(message.name)
        if message.failure:
            self.refuse(message.failure)
        elif message.doing == "removing":
            self.change(states.without_engine(self.state, message.name))
            self.say(f"{message.name} is removed.")
        elif message.doing == "reloading":
            self.say("systemd has read its units anew.")
        elif message.doing == "scheduling":
            self.say(f"The clock of {message.name} is set.")
        elif message.doing == "stopping":
            self.say(f"{message.name} is stopped; none of its processes is left.")
        else:
            self._begun.add(message.name)
            if started:
                self.change(replace(self.state, selected=message.name))
                self.deck.show_pane("log")

    @on(EngineHighlighted)
    def _engine_highlighted(self, message: EngineHighlighted) -> None:
        self.change(replace(self.state, selected=message.name))
        self._tend_engines()

    @on(EngineSelected)
    def _engine_selected(self, message: EngineSelected) -> None:
        """Enter on an engine puts its plan on the board."""
        engine = self.state.engines.get(message.name)
        if engine is not None and engine.unit.spec is not None:
            self.model_desk.read(engine.unit.spec.model, engine.unit.spec)
            self.deck.open_pane("board")

    # -- logs, phases, readiness

    def _tend_engines(self) -> None:
        """Follow the logs of starting engines and of the selected one; ask those that start whether they answer."""
        state = self.state
        if state.selected != self._in_log:
            # The log pane shows one engine's log from its beginning: what it read of others goes.
            self._in_log = state.selected
            self.deck.log_pane.clear()
            if state.selected:
                self.engine_desk.unfollow(state.selected)
        for name, info in state.engines.items():
            wanted = name == state.selected or (info.unit.alive and not info.ready)
            run = info.unit.main_pid
            if wanted and (name not in self.engine_desk.following or (run and self._runs.get(name) not in (run, None))):
                self._follow(name, run)
            elif run and name in self.engine_desk.following:
                self._runs[name] = run
            if run and info.unit.alive and not info.ready and self._asked.get(name) != run:
                self._asked[name] = run
                self.turn_worker(f"ready-{name}", partial(self._wait_ready, name, run))
            elif not info.unit.alive and name in self._asked:
                del self._asked[name]
                self.workers.cancel_group(self, f"ready-{name}")
        for name in self.engine_desk.following - set(state.engines):
            self.engine_desk.unfollow(name)

    def _follow(self, name: str, run: int | None) -> None:
        try:
            self.engine_desk.follow(name)
        except OperatorError as error:
            self.say(str(error), "warning")
            return
        self._runs[name] = run
        self._trackers[name] = PhaseTracker()
        self.change(states.with_engine(self.state, name, standing=self._trackers[name].standing))
        self.start_seen(name)
        if name == self.state.selected:
            self.deck.log_pane.clear()

    def drain_logs(self) -> bool:
        """Give lines that came to the trackers, and those of the selected engine to the log; True where more wait."""
        for name, backlog in list(self.engine_desk.logs.items()):
            lines = backlog.take(_LINES_AT_ONCE)
            if not lines:
                continue
            tracker = self._trackers[name]
            changed = False
            for line in lines:
                changed |= tracker.feed(line.text, line.at)
            if changed:
                self.change(states.with_engine(self.state, name, standing=tracker.standing))
            if name == self.state.selected:
                # Both count the lines from the beginning of the follower.
                why = tracker.standing.decisive
                self.deck.log_pane.extend(lines, reason=why.number - 1 if why is not None else None)
        return any(self.engine_desk.logs.values())

    async def _wait_ready(self, name: str, run: int) -> None:
        """Ask the engine until it answers; asking a port on which nobody listens yet leaves nothing in its log."""
        info = self.state.engines.get(name)
        if info is None or info.unit.spec is None:
            return
        options = info.unit.spec.options
        client_module = await asyncio.to_thread(import_module, "gpudeck.services.http.client")
        address = await asyncio.to_thread(import_module, "gpudeck.services.http.address")
        async with client_module.VllmClient(address.Address.of_engine(options.host, options.port).url) as client:
            at_once = await client.ready()
            if not at_once:
                await client.wait_until_ready(every_s=0.5)
            # Another's server may answer there: then this engine never will.
            while not await asyncio.to_thread(answers_itself, info.unit, options.port):
                await asyncio.sleep(1.0)
        url = client.address.url
        refusal = ""
        try:
            # The key is looked for only now: before its program runs a process has none.
            key = await asyncio.to_thread(self.engine_desk.api_key, name)
            async with client_module.VllmClient(url, key) as client:
                served = await client.models()
        except OperatorError as error:
            served, refusal = (), str(error)
        now = self.state.engines.get(name)
        if now is None or now.unit.main_pid != run:
            return
        self.change(states.with_engine(self.state, name, ready=True, served=served))
        self._crashing.discard(name)
        self._served.add(name)
        if not (at_once and run in (self._found or ())):
            # One that served before the panel was opened is no news.
            self.say(f"{name} is ready. {refusal}".rstrip(), "warning" if refusal else "information")
        if name in self._trackers and self._trackers[name].answered(None if at_once else time.time()):
            self.change(states.with_engine(self.state, name, standing=self._trackers[name].standing))
        self.start_ended(name, watched=not at_once)


def _started_again(before: UnitState, now: UnitState) -> bool:
    """Whether a run ended by itself and another follows, which may have begun already."""
    return before.runs and (now.between_tries or now.restarts > before.restarts)
