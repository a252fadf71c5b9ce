"""Stopping an engine at the panel: which requests are in flight is told first, and waited for where that is wished."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

from textual import on

from gpudeck.app import state as states
from gpudeck.app.deck_app import PanelSetup
from gpudeck.app.engine_watch import EngineWatch
from gpudeck.app.messages import ActBegan, RequestsCounted
from gpudeck.app.state import EngineInfo
from gpudeck.services.engine.draining import DRAIN_SECONDS, InFlight, drain, in_flight, in_flight_words
from gpudeck.services.engine.types import Runner
from gpudeck.services.errors import OperatorError
from gpudeck.widgets.question import Answer, Question

_COUNT = "count-requests"  # the worker group
_NOW, _DRAINED = "now", "drained"
_ASKING = "Asking which requests are in flight."


class StopActs(EngineWatch):
    def __init__(self, setup: PanelSetup) -> None:
        super().__init__(setup)
        self._drains: dict[str, threading.Event] = {}  # by engine: cuts its drain short
        self._kept_serving: set[str] = set()  # engines whose drain was called off

    @on(RequestsCounted)
    def _requests_counted(self, message: RequestsCounted) -> None:
        self.change(states.with_engine(self.state, message.name, in_flight=message.now))

    def ask_to_end(self, engine: EngineInfo, doing: str, lost: str, act: Callable[[Runner], None]) -> None:
        """Ask before an act that ends what the engine computes; `doing` is "stopping", "restarting" or "removing"."""
        name, verb = engine.unit.name, {"stopping": "stop", "restarting": "restart", "removing": "remove"}[doing]
        go = Answer("y", f"{verb} {name}", _NOW)
        serves = engine.unit.alive and engine.ready
        question = Question(
            f"{verb.capitalize()} {name}?", (lost, _ASKING) if serves else (lost,), (go,), glyphs=self.glyphs
        )

        def answered(answer: str | None) -> None:
            self.workers.cancel_group(self, _COUNT)
            if answer is not None:
                self._end(engine, doing, act, drained=answer == _DRAINED)

        self.push_screen(question, answered)
        if serves:
            self.turn_worker(_COUNT, partial(self._count, question, engine, lost, go))

    async def _count(self, question: Question, engine: EngineInfo, lost: str, go: Answer) -> None:
        now = await asyncio.to_thread(in_flight, engine.unit)
        if now is None:
            question.ask((lost, "The engine does not tell its requests in flight."), (go,))
        elif now.any:
            words = in_flight_words(now)
            told = (
                f"{words[:1].upper()}{words[1:]}. They end unfinished, or are waited for, at most "
                f"{DRAIN_SECONDS // 60} minutes; new ones still come in meanwhile: gpudeck can not turn them away."
            )
            wait = Answer("d", "wait for them", _DRAINED)
            question.ask((lost, told), (Answer("y", f"{go.does} now", _NOW), wait))
        else:
            question.ask((lost, "No request is in flight."), (go,))

    def _end(self, engine: EngineInfo, doing: str, act: Callable[[Runner], None], *, drained: bool) -> None:
        name = engine.unit.name
        cut_short = threading.Event()

        def do(runner: Runner) -> None:
            if drained:
                self._see_off(engine, doing, cut_short)
            act(runner)

        if drained:
            self._drains[name] = cut_short
        self.run_act(name, doing, do)

    def _see_off(self, engine: EngineInfo, doing: str, cut_short: threading.Event) -> None:
        """On the act's thread.  Raises OperatorError where the operator called it off."""
        name = engine.unit.name
        self.post_message(ActBegan(name, "draining"))

        def told(now: InFlight) -> None:
            self.post_message(RequestsCounted(name, now))

        try:
            drain(lambda: in_flight(engine.unit), DRAIN_SECONDS, told, cut_short)
        finally:
            self._drains.pop(name, None)
            self.post_message(RequestsCounted(name, None))
        if name in self._kept_serving:
            self._kept_serving.discard(name)
            raise OperatorError(f"{name} was not stopped: it goes on serving.")
        self.post_message(ActBegan(name, doing))

    def ask_of_drain(self, engine: EngineInfo) -> bool:
        """Ask what is to become of a drain that is under way; False where none is."""
        name = engine.unit.name
        cut_short = self._drains.get(name)
        if cut_short is None:
            return False
        left = in_flight_words(engine.in_flight) if engine.in_flight is not None else "its requests are being asked for"
        answers = (Answer("y", "end it now", _NOW), Answer("s", "serve on", "serve"))

        def answered(answer: str | None) -> None:
            if answer == "serve":
                self._kept_serving.add(name)
            if answer is not None:
                cut_short.set()

        sentence = f"{name} is drained: {left}. It ends when none is left."
        self.push_screen(Question(f"Wait for {name}'s requests?", (sentence,), answers, glyphs=self.glyphs), answered)
        return True

    def run_act(self, name: str, doing: str, act: Callable[[Runner], None]) -> None:
        """Do it on a thread; one that can not begin is refused in a sentence."""
        try:
            self.engine_desk.act(name, doing, act)
        except OperatorError as error:
            self.refuse(str(error))
