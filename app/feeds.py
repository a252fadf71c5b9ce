"""From service threads to the screen: values that arrive on other threads, handed over without a queue growing.

A feed keeps only what the screen still needs (the latest snapshot, the log lines not yet drawn) and posts one message
while one is under way, so a slow terminal can never be buried.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from textual.message import Message

Value = TypeVar("Value")
Post = Callable[[Message], object]

# Log lines held for a screen that is not drawing: more than any terminal shows, little in memory.
_WAITING_LINES = 20_000


class LatestSlot(Generic[Value]):
    """The newest value of a feed.  `put` on any thread; `take` on the screen's, once for each posted message."""

    def __init__(self, post: Post, message: Callable[[], Message]) -> None:
        self._post = post
        self._message = message
        self._lock = threading.Lock()
        self._values: deque[Value] = deque(maxlen=1)

    def put(self, value: Value) -> None:
        with self._lock:
            announced = bool(self._values)
            self._values.append(value)
        if not announced:
            self._post(self._message())

    def take(self) -> Value | None:
        with self._lock:
            return self._values.pop() if self._values else None


class Backlog(Generic[Value]):
    """Values in order, of which the oldest are dropped, and counted, while nobody takes them."""

    def __init__(self, limit: int = _WAITING_LINES) -> None:
        self._lock = threading.Lock()
        self._values: deque[Value] = deque(maxlen=limit)
        self._dropped = 0

    def extend(self, values: "list[Value]") -> None:
        with self._lock:
            free = (self._values.maxlen or 0) - len(self._values)
            self._dropped += max(0, len(values) - free)
            self._values.extend(values)

    def take(self) -> "tuple[list[Value], int]":
        """What has come since the last call, and how many were dropped before them."""
        with self._lock:
            values, dropped = list(self._values), self._dropped
            self._values.clear()
            self._dropped = 0
        return values, dropped
