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

_WAITING_LINES = 5_000  # log lines between a follower and the screen: a quarter of a second at the pace of a flood


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
    """Values in order, of which few are held: who brings more than are taken waits, and drops where it must itself.

    `announce` is called, on the bringer's thread, when there are values where there were none.
    """

    def __init__(self, announce: Callable[[], object], limit: int = _WAITING_LINES) -> None:
        self._announce = announce
        self._limit = limit
        self._values: deque[Value] = deque()
        self._room = threading.Condition()
        self._closed = False

    def extend(self, values: "list[Value]") -> None:
        """Add values once there is room; nothing is added to one that is closed."""
        with self._room:
            self._room.wait_for(lambda: self._closed or len(self._values) < self._limit)
            if self._closed or not values:
                return
            announced = bool(self._values)
            self._values.extend(values)
        if not announced:
            self._announce()

    def take(self, most: int) -> "list[Value]":
        """The oldest values, at most so many."""
        with self._room:
            values = [self._values.popleft() for _ in range(min(most, len(self._values)))]
            self._room.notify_all()
        return values

    def close(self) -> None:
        """Nobody takes any more: let go of who waits."""
        with self._room:
            self._closed = True
            self._room.notify_all()

    def __len__(self) -> int:
        return len(self._values)
