"""A check of one engine: the canned prompts, and what cards and log say meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field

from gpudeck.services.box.types import Snapshot
from gpudeck.services.check.cards import card_items
from gpudeck.services.check.log import log_item
from gpudeck.services.check.prompts import CHINESE, JSON, SHORT, Canned, Heard, judged, long_prompt
from gpudeck.services.check.types import Item, Outcome
from gpudeck.services.engine.types import Runner
from gpudeck.services.errors import OperatorError
from gpudeck.services.http.client import VllmClient
from gpudeck.services.http.events import Done, ReasoningDelta, ServedModel, TextDelta
from gpudeck.services.http.refusals import ContextTooLongError
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.text import printable

_PROMPT_S = 300.0  # a prompt that takes longer has failed
_READINGS = 3  # of the box, at a beat that the caller sets
_LONGEST_WORK_S = 8.0
_STAGGER_S = 0.1
_WORK_S = 2.0  # a driver's utilisation is that of up to a second, and a quick engine answers in less
_SHORTEST = 0.05  # of the long prompt's length, halved until it fits


@dataclass(slots=True)
class Local:
    """What is known of an engine on this machine; whoever reads the box fills `during` while the check runs."""

    spec: EngineSpec
    log: Callable[[], Iterable[str]]  # the lines of its present run; blocks, may raise OperatorError
    before: Snapshot | None = None  # the box at rest
    during: list[Snapshot] = field(default_factory=list)
    trouble: str | None = None  # why the box can not be read


def present_log(runner: Runner, name: str) -> Callable[[], Iterable[str]]:
    """What reads the log of the engine's present run."""

    def lines() -> Iterable[str]:
        starts = runner.starts(name)
        return [line.text for line in runner.log_of(name, starts[0])] if starts else []

    return lines


class Check:
    """One run over the list.  `model` is the name that was asked, "" until one is known."""

    def __init__(self, client: VllmClient, local: Local | None = None) -> None:
        self.model = ""
        self._client = client
        self._local = local

    async def items(self) -> AsyncIterator[Item]:
        """The list, line by line as it is found.  Raises nothing but for a defect: what goes wrong is a line."""
        client, local = self._client, self._local
        try:
            models = await client.served()
        except OperatorError as error:
            yield Item("models", "models listed", Outcome.FAILED, str(error))
            return
        yield _models(models, local)
        if not models:
            return
        model, heard = models[0], []
        self.model = model.name
        for prompt in (SHORT, None, JSON, CHINESE):
            item, answer = await (_long(client, model) if prompt is None else _asked(client, model, prompt))
            if answer is not None:
                heard.append(answer)
            yield item
        for item in _stream_items(heard):
            yield item
        if local is not None:
            async for item in self._here(local, model, heard):
                yield item

    async def _here(self, local: Local, model: ServedModel, heard: list[Heard]) -> AsyncIterator[Item]:
        """What only shows on the engine's own machine."""
        if local.trouble is None and heard:
            await _keep_busy(self._client, model, local)
        found = card_items(local.spec, local.before, tuple(local.during)) if heard else ()
        for item in found or (Item("cards-busy", "cards", Outcome.SKIPPED, _why_unseen(local, heard)),):
            yield item
        try:
            yield log_item(await asyncio.to_thread(lambda: tuple(local.log())))
        except OperatorError as error:
            yield Item("log", "log free of repeating errors", Outcome.SKIPPED, str(error))


def _why_unseen(local: Local, heard: list[Heard]) -> str:
    if not heard:
        return "nothing was answered, so that nothing could be seen of its work"
    return local.trouble or "the box was not read meanwhile"


def _models(models: tuple[ServedModel, ...], local: Local | None) -> Item:
    names = ", ".join(printable(model.name) for model in models)
    if not models:
        return Item("models", "models listed", Outcome.FAILED, "the engine lists no model")
    wanted = local.spec.options.served_model_name if local is not None else None
    if wanted is not None and wanted not in [model.name for model in models]:
        return Item("models", "models listed", Outcome.FAILED, f"it lists {names} and not {printable(wanted)}")
    length = models[0].max_model_len
    context = f", {length:,} tokens of context" if length else ""
    return Item("models", "models listed", Outcome.PASSED, names + context)


async def _long(client: VllmClient, model: ServedModel) -> tuple[Item, Heard | None]:
    """The long prompt, shortened where this tokenizer makes more of it than fits."""
    part = 1.0
    while True:
        prompt = long_prompt(model.max_model_len, part)
        try:
            return await _asked(client, model, prompt, fit=part > _SHORTEST)
        except ContextTooLongError:
            part /= 2


async def _asked(
    client: VllmClient, model: ServedModel, prompt: Canned, *, fit: bool = False
) -> tuple[Item, Heard | None]:
    """The prompt's line, and what was heard; with `fit` a prompt that is too long raises ContextTooLongError."""
    try:
        heard = await asyncio.wait_for(_heard(client, model.name, prompt), _PROMPT_S)
    except ContextTooLongError as error:
        if fit:
            raise
        return Item(prompt.id, prompt.title, Outcome.FAILED, str(error)), None
    except OperatorError as error:
        return Item(prompt.id, prompt.title, Outcome.FAILED, str(error)), None
    except asyncio.TimeoutError:
        words = f"no whole answer within {_PROMPT_S:.0f} s: its log may say why"
        return Item(prompt.id, prompt.title, Outcome.FAILED, words), None
    return judged(prompt, heard), heard


async def _heard(client: VllmClient, model: str, prompt: Canned) -> Heard:
    text, reasoning, pieces, done = "", "", 0, None
    stream = client.chat(model, prompt.messages, max_tokens=prompt.max_tokens, temperature=0, more=prompt.more)
    async with aclosing(stream) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                text, pieces = text + event.text, pieces + 1
            elif isinstance(event, ReasoningDelta):
                reasoning, pieces = reasoning + event.text, pieces + 1
            elif isinstance(event, Done):
                done = event
    assert done is not None, "an answer ends with Done or an error"
    return Heard(text, reasoning, pieces, done)


async def _keep_busy(client: VllmClient, model: ServedModel, local: Local) -> None:
    """Work that lasts until it can be read from the cards.

    Each copy has some at every time: requests that come one by one may all go to the first, and those that come
    together end together.
    """
    began, read_before = time.monotonic(), len(local.during)
    streams = 3 * local.spec.placement.replicas

    def enough() -> bool:
        lasted = time.monotonic() - began
        return lasted > _WORK_S and (len(local.during) >= read_before + _READINGS or lasted > _LONGEST_WORK_S)

    async def one_after_the_other(stream: int) -> None:
        await asyncio.sleep(_STAGGER_S * stream / streams)
        while not enough():
            _, heard = await _asked(client, model, SHORT)
            if heard is None:
                return

    await asyncio.gather(*map(one_after_the_other, range(streams)))


def _stream_items(heard: list[Heard]) -> tuple[Item, ...]:
    if not heard:
        return ()
    pieces = max(answer.pieces for answer in heard)
    streamed = Item(
        "stream",
        "stream came",
        Outcome.PASSED if pieces > 1 else Outcome.FAILED,
        f"{pieces} pieces" if pieces > 1 else "each answer came in one piece: is a proxy in between that buffers?",
    )
    counted = [answer.done.usage for answer in heard if answer.done.usage is not None]
    usage = Item(
        "usage",
        "usage came",
        Outcome.PASSED if len(counted) == len(heard) else Outcome.FAILED,
        f"{sum(usage.completion_tokens for usage in counted):,} tokens of answers"
        if len(counted) == len(heard)
        else f"only {len(counted)} of {len(heard)} answers told their tokens",
    )
    return streamed, usage
