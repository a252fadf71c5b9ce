"""The conversation with one engine: what was said, and the answer that is coming."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

from gpudeck.services.errors import OperatorError
from gpudeck.services.http.conversation import ChatSettings, Exchange, exchanges, messages

if TYPE_CHECKING:
    from gpudeck.services.http.events import Done, Message

NO_TEMPLATE = "This model has no chat template: it completes the text of all turns (/v1/completions)."


@dataclass(frozen=True, slots=True)
class ChatFace:
    """What the desk shows an answer with: the chat pane's methods."""

    text: Callable[[str], object]
    reasoning: Callable[[str], object]
    note: Callable[[str], object]
    finish: Callable[[str], object]
    fail: Callable[[str], object]


class ChatDesk:
    """Streams answers of one engine; runs on the screen's event loop, since HTTP does not block it."""

    def __init__(self, face: ChatFace) -> None:
        self._face = face
        self.settings = ChatSettings()
        self._exchanges: list[Exchange] = []
        self._target: str | None = None
        self._loaded = False  # and nobody has been asked since

    def turn_to(self, target: str | None) -> bool:
        """Talk to this target from now on; True where a new conversation begins.

        A conversation that was loaded goes on with whoever is talked to next.
        """
        if target == self._target:
            return False
        self._target = target
        if self._loaded:
            self._loaded = False
            return False
        self._exchanges = []
        return True

    @property
    def turns(self) -> "tuple[Message, ...]":
        """What was said and answered, the system prompt before it."""
        return messages(self.settings.system, self._exchanges)

    def question(self, back: int) -> str | None:
        """The question before so many others, from 1; None where there is none."""
        return self._exchanges[-back].question if 0 < back <= len(self._exchanges) else None

    def load(self, turns: "Iterable[Message]") -> tuple[Exchange, ...]:
        """Go on from this conversation; gives back what is to be shown."""
        system, found = exchanges(turns)
        self.settings = replace(self.settings, system=system)
        self._exchanges = list(found)
        self._target, self._loaded = None, True
        return found

    async def ask(
        self,
        url: str,
        model: str,
        text: str,
        find_key: Callable[[], str | None] = lambda: None,
        *,
        back: int = 0,
    ) -> None:
        """Send a message and show the answer as it comes; `find_key` may block, and is called on a thread.

        The last `back` exchanges are forgotten first.  Cancelling the task closes the connection, which ends the
        request in the engine.  What had come stays, on the screen and as a turn of the conversation.
        """
        if back:
            del self._exchanges[-back:]
        place, settings = len(self._exchanges), self.settings
        here = self._exchanges  # another conversation may begin before this answer has ended
        sent = [*self.turns]
        here.append(Exchange(text))
        answer = ""
        # httpx takes a tenth of a second to import: not on the screen's thread.
        client_module = await asyncio.to_thread(import_module, "gpudeck.services.http.client")
        events = await asyncio.to_thread(import_module, "gpudeck.services.http.events")
        calls = (await asyncio.to_thread(import_module, "gpudeck.services.http.tool_calls")).ToolCalls()
        sent.append(events.Message("user", text))

        def tell_calls() -> None:
            for call in calls.told():
                self._face.note(f"The model calls a tool: {call}")

        try:
            key = await asyncio.to_thread(find_key)
            async with (
                client_module.VllmClient(url, key) as client,
                aclosing(
                    client.chat(
                        model,
                        sent,
                        max_tokens=settings.max_tokens,
                        temperature=settings.temperature,
                        stop=settings.stop,
                    )
                ) as stream,
            ):
                async for event in stream:
                    if isinstance(event, events.TextDelta | events.RefusalDelta):
                        if isinstance(event, events.RefusalDelta) and not answer:
                            self._face.note("The model refuses:")
                        answer += event.text
                        self._face.text(event.text)
                    elif isinstance(event, events.ReasoningDelta):
                        self._face.reasoning(event.text)
                    elif isinstance(event, events.ToolCallDelta):
                        calls.add(event)
                    elif isinstance(event, events.NoTemplate):
                        self._face.note(NO_TEMPLATE)
                    elif isinstance(event, events.Done):
                        tell_calls()
                        self._face.finish(told(event))
        except OperatorError as error:
            tell_calls()
            self._face.fail(str(error))
        except asyncio.CancelledError:
            tell_calls()
            self._face.fail("Cancelled; the engine was told to stop.")
            raise
        finally:
            # Another question may have taken its place where this one was cancelled.
            if len(here) > place and here[place].question == text:
                here[place] = Exchange(text, answer)


def told(done: "Done") -> str:
    """An answer's figures in one line, as far as the server gave them."""
    words = []
    if done.ttft is not None:
        words.append(f"first token {done.ttft:.2f} s")
    if done.tokens_per_second is not None:
        words.append(f"{done.tokens_per_second:.1f} tokens/s")
    if done.usage is not None:
        words.append(f"{done.usage.prompt_tokens} + {done.usage.completion_tokens} tokens")
    words.append(f"{done.seconds:.1f} s")
    if done.finish_reason == "length":
        words.append("cut at max tokens")
    return " · ".join(words)
