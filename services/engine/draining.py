"""Requests in flight: how many there are, and waiting until there are none.

vLLM can not be told to take no more of them, nor can gpudeck stand before it: a drain only waits for a moment in which
none runs.  (`--shutdown-timeout` is vLLM's own way to finish what runs once it is stopped.)
"""

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from gpudeck.services.engine.types import UnitState
from gpudeck.services.errors import OperatorError

DRAIN_SECONDS = 300
_EVERY_S = 1.0  # each look is a line in the engine's log
_UNKNOWN_LOOKS = 3  # so often in a row nothing may be told before a drain ends


@dataclass(frozen=True, slots=True)
class InFlight:
    """Requests that an engine has: being computed, and waiting in its queue."""

    running: int
    waiting: int

    @property
    def any(self) -> bool:
        return self.running + self.waiting > 0


def in_flight(state: UnitState) -> InFlight | None:
    """What the engine says; None where it does not answer, or is one that does not tell.  Blocks for seconds at most.

    Not to be called where an event loop runs.
    """
    if state.spec is None or not state.runs:
        return None
    from gpudeck.services.http.address import Address

    options = state.spec.options
    try:
        return asyncio.run(_ask(Address.of_engine(options.host, options.port).url))
    except OperatorError:
        return None


async def _ask(url: str) -> InFlight | None:
    # The panel knows this module from its beginning, and these only when somebody asks.
    from gpudeck.services.http.client import VllmClient
    from gpudeck.services.metrics.reading import read_sample

    async with VllmClient(url) as client:
        sample = read_sample(await client.metrics(), time.monotonic())
    if sample.running is None or sample.waiting is None:
        return None
    return InFlight(sample.running, sample.waiting)


def drain(
    look: Callable[[], InFlight | None],
    seconds: float,
    told: Callable[[InFlight], None],
    cut_short: threading.Event,
) -> InFlight | None:
    """Wait until no request is in flight, `seconds` are over, nothing can be told any more, or `cut_short` is set.

    `told` hears every change.  Returns what is in flight at the end; None where that is not known.
    """
    end = time.monotonic() + seconds
    before: InFlight | None = None
    unknown = 0
    while True:
        now = look()
        unknown = unknown + 1 if now is None else 0
        if now is not None and now != before:
            told(now)
            before = now
        over = time.monotonic() >= end or cut_short.is_set()
        if (now is not None and not now.any) or unknown >= _UNKNOWN_LOOKS or over:
            return now
        cut_short.wait(min(_EVERY_S, max(end - time.monotonic(), 0)))


def in_flight_words(now: InFlight) -> str:
    """`2 requests run and 1 waits`, `1 request waits`, `no request is in flight`."""
    runs = "" if not now.running else f"{_requests(now.running)} {'runs' if now.running == 1 else 'run'}"
    waits = "waits" if now.waiting == 1 else "wait"
    if not now.waiting:
        return runs or "no request is in flight"
    return f"{runs} and {now.waiting:,} {waits}" if runs else f"{_requests(now.waiting)} {waits}"


def _requests(number: int) -> str:
    return f"{number:,} request{'' if number == 1 else 's'}"
