"""A measured run over one engine or several: levels one after the other, cards and queues read meanwhile."""

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from gpudeck.services.bench.cards import CardMeter
from gpudeck.services.bench.figures import level_of
from gpudeck.services.bench.load import OwnLoad, Progress, Reach
from gpudeck.services.bench.queueing import queue_time, sample
from gpudeck.services.bench.store import new_id
from gpudeck.services.bench.types import (
    CardFacts,
    CardUse,
    Generator,
    Level,
    Limits,
    Request,
    Result,
    Target,
    Workload,
)
from gpudeck.services.bench.vllm_load import VllmLoad
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.client import VllmClient
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.text import printable

_METERED_S = 0.6  # a reading that was due at a level's end is waited for so long


@dataclass(frozen=True, slots=True)
class Aim:
    """One engine to be measured, and what is known of it beforehand.  `spec` is None for one that is elsewhere."""

    name: str
    url: str
    key: str | None = field(default=None, repr=False)
    model: str | None = None  # the served name that is asked; None: the first that is served
    spec: EngineSpec | None = None
    layers: tuple[int, ...] = ()
    vocabulary: int | None = None


@dataclass(frozen=True, slots=True)
class Around:
    """The machine at the time: what is kept beside the figures, and who reads its cards."""

    box: str = ""
    cards: tuple[CardFacts, ...] = ()
    meter: CardMeter | None = None
    estimates: Mapping[float, float] = field(default_factory=dict)  # level → tokens a second of one request


@dataclass(frozen=True, slots=True)
class Step:
    """How far a run is."""

    place: int  # of the level, from 0
    levels: int
    level: float
    done: int
    wanted: int
    failed: int
    finished: Level | None = None  # the figures, once the level is over


class Bench:
    """One run.  `stop` may be called from the loop's thread and keeps what has come so far."""

    def __init__(
        self,
        aims: Sequence[Aim],
        workload: Workload,
        limits: Limits,
        around: Around,
        tell: Callable[[Step], None] = lambda _step: None,
    ) -> None:
        self._aims = aims
        self._workload = workload
        self._limits = limits
        self._around = around
        self._tell = tell
        self._stop = asyncio.Event()
        self._notes: list[str] = []

    def stop(self) -> None:
        self._stop.set()

    async def run(self) -> Result:
        """The result, a partial one where it was stopped.

        Raises OperatorError where an engine can not be reached, or where it answers none of the first requests.
        """
        now = datetime.now(timezone.utc)
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(VllmClient(aim.url, aim.key)) for aim in self._aims]
            targets = [await _target(aim, client) for aim, client in zip(self._aims, clients, strict=True)]
            levels = await self._levels(clients, targets)
        return Result(
            id=new_id(now, [aim.name for aim in self._aims]),
            at=now.isoformat(timespec="seconds"),
            targets=tuple(targets),
            workload=self._workload,
            limits=self._limits,
            levels=tuple(levels),
            box=self._around.box,
            cards=self._around.cards,
            partial=self._stop.is_set(),
            notes=tuple(self._notes),
        )

    async def _levels(self, clients: Sequence[VllmClient], targets: Sequence[Target]) -> list[Level]:
        salt = uuid.uuid4().hex[:12]
        own = OwnLoad(
            [
                Reach(client, target.model, aim.vocabulary)
                for client, target, aim in zip(clients, targets, self._aims, strict=True)
            ],
            self._workload,
            salt,
        )
        await self._warm_up(own)
        load: OwnLoad | VllmLoad = self._vllm_load(targets, salt) or own
        levels: list[Level] = []
        for place, level in enumerate(self._workload.levels):
            if self._stop.is_set():
                break
            try:
                done = await self._level(place, level, load, clients)
            except OperatorError as error:
                if load is own or place:
                    raise
                # Its tokenizer, or what its benchmark needs, may be missing there: the run goes on with our own.
                self._notes.append(f"{str(error).rstrip('.')}: measured by gpudeck's own load instead.")
                self._workload = replace(self._workload, generator=Generator.OWN)
                load = own
                done = await self._level(place, level, load, clients)
            if done is not None:
                levels.append(done)
        return levels

    async def _warm_up(self, own: OwnLoad) -> None:
        stopped = asyncio.ensure_future(self._stop.wait())
        warming = asyncio.ensure_future(own.warm_up())
        await asyncio.wait((warming, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not warming.done():
            warming.cancel()
            return
        requests = await warming
        if all(request.error for request in requests):
            raise OperatorError(requests[0].error)

    def _vllm_load(self, targets: Sequence[Target], salt: str) -> VllmLoad | None:
        if self._workload.generator is not Generator.VLLM:
            return None
        aim, target = self._aims[0], targets[0]
        assert aim.spec is not None, "vLLM's own load needs the engine's own program"
        return VllmLoad(aim.spec.program, aim.url, target.model, aim.spec.model, self._workload, salt, aim.key)

    async def _level(
        self, place: int, level: float, load: OwnLoad | VllmLoad, clients: Sequence[VllmClient]
    ) -> Level | None:
        """The figures of one level; None where it was stopped before any request had ended."""
        levels, wanted = self._workload.levels, self._workload.requests_at(level)

        def step(done: int, failed: int, finished: Level | None = None) -> None:
            self._tell(Step(place, len(levels), level, min(done, wanted), wanted, failed, finished))

        progress: Progress = lambda done, failed: step(done, failed)  # noqa: E731
        step(0, 0)
        before = [await sample(client) for client in clients]
        requests = await load.level(level, progress, self._stop)
        if not requests:
            return None
        after = [await sample(client) for client in clients]
        figures = replace(
            level_of(level, wanted, requests, partial=len(requests) < wanted),
            queue=queue_time(before, after),
            cards=await self._cards(requests),
            estimated=self._around.estimates.get(level),
        )
        step(len(requests), figures.failed, figures)
        return figures

    async def _cards(self, requests: Sequence[Request]) -> tuple[CardUse, ...]:
        meter = self._around.meter
        if meter is None:
            return ()
        began = min(request.began for request in requests)
        ended = max(request.began + request.seconds for request in requests)
        await asyncio.sleep(max(ended + _METERED_S - time.monotonic(), 0))
        return meter.use(began, ended)


async def _target(aim: Aim, client: VllmClient) -> Target:
    models = await client.models()
    if not models:
        raise OperatorError(f"{printable(aim.name)} serves no model.")
    if aim.model is not None and aim.model not in models:
        names = ", ".join(printable(name) for name in models)
        raise OperatorError(f"{printable(aim.name)} serves no model named {printable(aim.model)!r}: it serves {names}.")
    return Target(aim.name, aim.url, aim.model or models[0], await client.version(), aim.spec, aim.layers)
