"""Checking an engine from the panel: the canned prompts, and the whole road from its unit to an answer."""

import asyncio
from collections.abc import Callable
from functools import partial
from importlib import import_module

from textual import on

from gpudeck.app.chat_acts import ChatActs
from gpudeck.app.state import EngineInfo
from gpudeck.services.check.types import Item, Outcome
from gpudeck.services.engine.types import Runner
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.address import Address
from gpudeck.widgets.check_list import CheckList
from gpudeck.widgets.confirm import Confirm
from gpudeck.widgets.messages import CheckAsked, CurlAsked, WalkAsked

_CHECK = "check"  # the worker group: one check at a time
_LOOK_S = 0.2  # between two looks at the panel's own state
Tell = Callable[[Item], None]


class CheckActs(ChatActs):
    def action_check(self) -> None:
        """Check the engine that the list's cursor stands on, in a list of its own."""
        engine = self.state.engine
        if engine is None or engine.unit.spec is None or not engine.ready:
            self.tell_unready()
            return
        self.push_screen(CheckList(engine.unit.name, self.glyphs), self._check_left)
        self.turn_worker(_CHECK, partial(self._check, engine.unit.name, walk=False))

    def _check_left(self, _result: None) -> None:
        self.workers.cancel_group(self, _CHECK)

    @on(CheckAsked)
    def _check_asked(self, message: CheckAsked) -> None:
        self.turn_worker(_CHECK, partial(self._check, message.name, walk=False))

    @on(WalkAsked)
    def _walk_asked(self, message: WalkAsked) -> None:
        def answered(go: bool | None) -> None:
            if go:
                self.turn_worker(_CHECK, partial(self._check, message.name, walk=True))

        sentences = (
            "Its unit is read anew where it was changed on disk, the engine restarted, its log followed until it is "
            "ready, and the list gone through.",
            "Requests in flight end.",
        )
        act = f"restart {message.name} and check it"
        self.push_screen(Confirm("The whole road?", sentences, act=act, glyphs=self.glyphs), answered)

    @on(CurlAsked)
    def _curl_asked(self, message: CurlAsked) -> None:
        if not message.line:
            self.say("There is no request yet: wait for the engine's models.")
            return
        self.copy_to_clipboard(message.line)
        self.say("The short prompt is in the clipboard as a curl line, where your terminal allows that.")

    async def _check(self, name: str, *, walk: bool) -> None:
        items: list[Item] = []
        curl = ""

        def show(doing: str) -> None:
            for screen in self.screen_stack:
                if isinstance(screen, CheckList) and screen.engine == name:
                    screen.show(items, doing, curl)

        def tell(item: Item) -> None:
            items.append(item)
            show("asking")

        show("looking at its unit" if walk else "asking for its models")
        if walk and not await self._walk(name, tell, show):
            show("")
            return
        engine = self.state.engines.get(name)
        if engine is None or engine.unit.spec is None:
            return
        # httpx takes a tenth of a second to import: not on the screen's thread.
        run = await asyncio.to_thread(import_module, "gpudeck.services.check.run")
        client = await asyncio.to_thread(import_module, "gpudeck.services.http.client")
        curls = await asyncio.to_thread(import_module, "gpudeck.services.check.curl")
        options = engine.unit.spec.options
        url = Address.of_engine(options.host, options.port).url
        log = partial(self.engine_desk.present_log, name)
        local = run.Local(engine.unit.spec, log, self.state.snapshot, trouble=self.state.trouble)
        reading = asyncio.ensure_future(self._collect(local.during))
        try:
            key = await asyncio.to_thread(self.engine_desk.api_key, name)
            async with client.VllmClient(url, key) as asked:
                check = run.Check(asked, local)
                async for item in check.items():
                    if check.model:
                        curl = curls.curl_line(url, check.model)
                    tell(item)
        except OperatorError as error:
            tell(Item("models", "asked", Outcome.FAILED, str(error)))
        finally:
            reading.cancel()
        show("")

    async def _collect(self, during: list[object]) -> None:
        """Keep each snapshot that comes while prompts run."""
        seen = self.state.snapshot
        while True:
            await asyncio.sleep(_LOOK_S)
            now = self.state.snapshot
            if now is not None and now is not seen:
                seen = now
                during.append(now)

    async def _walk(self, name: str, tell: Tell, show: Callable[[str], None]) -> bool:
        """Reload, restart and wait; whether the engine is ready."""
        engine = self.state.engines.get(name)
        if engine is None:
            return False
        road = await asyncio.to_thread(import_module, "gpudeck.services.check.road")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[str] = loop.create_future()

        def ended(failure: str) -> None:
            if not done.done():
                done.set_result(failure)

        refuse = self.refusal_of_restart(engine)

        def act(runner: Runner) -> None:
            try:
                refuse(runner)
                road.walk(runner, name, lambda item: loop.call_soon_threadsafe(tell, item))
            except OperatorError as error:
                loop.call_soon_threadsafe(ended, str(error))
                raise
            loop.call_soon_threadsafe(ended, "")

        try:
            self.engine_desk.act(name, "restarting", act)
            failure = await done
        except OperatorError as error:
            failure = str(error)
        if failure:
            tell(Item("restart", "restarted", Outcome.FAILED, failure))
            return False
        return await self._ready_again(name, engine, tell, show)

    async def _ready_again(self, name: str, before: EngineInfo, tell: Tell, show: Callable[[str], None]) -> bool:
        while True:
            info = self.state.engines.get(name)
            if info is None:
                tell(Item("ready", "ready", Outcome.FAILED, "it was removed meanwhile"))
                return False
            anew = info.unit.main_pid not in (None, before.unit.main_pid)
            if info.ready and anew:
                tell(Item("ready", "ready, by its log and its port", Outcome.PASSED))
                return True
            if info.busy is None and info.word in ("failed", "stopped", "restarting"):
                tell(Item("ready", "ready", Outcome.FAILED, info.why or f"it is {info.word}"))
                return False
            show(f"its log: {info.standing.phase.value}")
            await asyncio.sleep(_LOOK_S)
