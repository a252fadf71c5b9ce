"""gpudeck's own load: requests in a closed or an open loop, spread over the engines of a run."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from gpudeck.services.bench.prompts import arrivals, prompts
from gpudeck.services.bench.request import body, timed
from gpudeck.services.bench.types import Request, Workload
from gpudeck.services.http.client import VllmClient

WARM_UP = 2  # requests to each engine before the first level, left out of every figure


Progress = Callable[[int, int], None]  # requests that ended, and how many of them failed


@dataclass(frozen=True, slots=True)
class Reach:
    """An engine under load; `vocabulary` is None where it is not known."""

    client: VllmClient
    model: str
    vocabulary: int | None = None


class OwnLoad:
    """Sends the requests of one level after the other; `stop` may be set from outside and ends it within a moment."""

    def __init__(self, reaches: Sequence[Reach], workload: Workload, salt: str, *, silence: float = 600.0) -> None:
        self._reaches = reaches
        self._workload = workload
        self._salt = salt
        self._silence = silence

    async def warm_up(self) -> tuple[Request, ...]:
        """The first requests, whose kernels are compiled and caches filled meanwhile."""
        return tuple(
            await asyncio.gather(
                *(
                    self._send(target, prompt, "warm-up")
                    for target, reach in enumerate(self._reaches)
                    for prompt in prompts(WARM_UP, self._workload.input_tokens, -1, reach.vocabulary)
                )
            )
        )

    async def level(self, level: float, progress: Progress, stop: asyncio.Event) -> list[Request]:
        """Send the requests of one level; what had ended when `stop` was set is returned too."""
        asked = self._requests(level)
        ended: list[Request] = []

        def done(request: Request) -> None:
            ended.append(request)
            progress(len(ended), sum(bool(each.error) for each in ended))

        work = self._open(asked, level, done) if self._workload.open_loop else self._closed(asked, round(level), done)
        running, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (running, stopped):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await running
        return ended

    def _requests(self, level: float) -> list[tuple[int, list[int], str]]:
        """Engine, prompt and salt of each request, in order; the engines take turns."""
        count, engines = self._workload.requests_at(level), len(self._reaches)
        salt = f"{self._salt}-{level:g}"
        # Each level has prompts of its own, and each engine draws them from its own vocabulary.
        drawn = [
            prompts(
                count,
                self._workload.input_tokens,
                self._workload.seed * 1_000_003 + round(level * 1000),
                reach.vocabulary,
            )
            for reach in self._reaches
        ]
        return [(number % engines, next(drawn[number % engines]), salt) for number in range(count)]

    async def _closed(
        self, asked: list[tuple[int, list[int], str]], concurrency: int, done: Callable[[Request], None]
    ) -> None:
        """So many at once over all engines, each with its share."""
        waiting = [[entry for entry in asked if entry[0] == target] for target in range(len(self._reaches))]

        async def one_after_the_other(target: int) -> None:
            queue = waiting[target]
            while queue:
                done(await self._send(*queue.pop(0)))

        await asyncio.gather(*(one_after_the_other(slot % len(self._reaches)) for slot in range(concurrency)))
        # Fewer at once than engines: the rest of the requests goes to those that have had none.
        for queue in waiting:
            while queue:
                done(await self._send(*queue.pop(0)))

    async def _open(
        self, asked: list[tuple[int, list[int], str]], rate: float, done: Callable[[Request], None]
    ) -> None:
        """Each when its time has come, whatever the engines make of it."""
        began = time.monotonic()

        async def at(moment: float, entry: tuple[int, list[int], str]) -> None:
            await asyncio.sleep(max(began + moment - time.monotonic(), 0))
            done(await self._send(*entry))

        moments = arrivals(len(asked), rate, self._workload.seed)
        await asyncio.gather(*(at(moment, entry) for moment, entry in zip(moments, asked, strict=True)))

    async def _send(self, target: int, prompt: list[int], salt: str) -> Request:
        reach = self._reaches[target]
        asked = body(reach.model, prompt, self._workload, salt)
        return await timed(reach.client, target, asked, silence=self._silence)
