"""The conversation with one engine: what was said, and the answer that is coming."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from gpudeck.services.errors import OperatorError

if TYPE_CHECKING:
    from gpudeck.services.http.events import Done, Message


@dataclass(frozen=True, slots=True)
class ChatFace:
    """What the desk shows an answer with: the chat pane's methods."""

    text: Callable[[str], object]
    reasoning: Callable[[str], object]
    finish: Callable[[str], object]
    fail: Callable[[str], object]


class ChatDesk:
    """Streams answers of one engine; runs on the screen's event loop, since HTTP does not block it."""

    def __init__(self, face: ChatFace) -> None:
        self._face = face
        self._turns: list[Message] = []
        self._target: str | None = None

    def turn_to(self, target: str | None) -> bool:
        """Talk to this URL from now on; True where a new conversation begins."""
        if target == self._target:
            return False
        self._target = target
        self._turns = []
        return True

    async def ask(self, url: str, model: str, text: str, find_key: Callable[[], str | None] = lambda: None) -> None:
        """Send a message and show the answer as it comes; `find_key` may block, and is called on a thread.

        Cancelling the task closes the connection, which ends the request in the engine.  What had come stays, on the
        screen and as a turn of the conversation.
        """
        # httpx takes a tenth of a second to import: not on the screen's thread.
        client_module = await asyncio.to_thread(import_module, "gpudeck.services.http.client")
        events = await asyncio.to_thread(import_module, "gpudeck.services.http.events")
        turns, answer = self._turns, ""
        turns.append(events.Message("user", text))
        try:
            key = await asyncio.to_thread(find_key)
            async with client_module.VllmClient(url, key) as client, aclosing(client.chat(model, turns)) as stream:
                async for event in stream:
                    if isinstance(event, events.TextDelta):
                        answer += event.text
                        self._face.text(event.text)
                    elif isinstance(event, events.ReasoningDelta):
                        self._face.reasoning(event.text)
                    elif isinstance(event, events.Done):
                        self._face.finish(told(event))
        except OperatorError as error:
            self._face.fail(str(error))
        except asyncio.CancelledError:
            self._face.fail("Cancelled; the engine was told to stop.")
            raise
        finally:
            if answer:
                turns.append(events.Message("assistant", answer))
            else:
                # A question without an answer would be sent again with the next one.
                turns.pop()


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
