"""Results of systemd's jobs, as JobRemoved tells them."""

import threading
from collections import OrderedDict

from gpudeck.services.engine.systemd.connection import Connection

# Results that no one has asked for yet: other people's jobs, and ours until the call that made them returns.
_KEPT = 512


class Jobs:
    """Keeps the results of the latest jobs and lets callers wait for theirs."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._results: OrderedDict[str, str] = OrderedDict()

    def removed(self, _number: int, path: str, _unit: str, result: str) -> None:
        """To be called for every JobRemoved."""
        with self._news:
            self._results[path] = result
            while len(self._results) > _KEPT:
                self._results.popitem(last=False)
            self._news.notify_all()

    def look_up(self) -> None:
        """Have everyone who waits look whether their connection still lives."""
        with self._news:
            self._news.notify_all()

    def result(self, path: str, connection: Connection, seconds: float) -> str | None:
        """The job's result ("done", "failed", "canceled", "timeout", "dependency", "skipped" …).

        None where it has none after `seconds`, or where the connection broke, so that none will be told.
        """
        with self._news:
            self._news.wait_for(lambda: path in self._results or not connection.alive, seconds)
            return self._results.pop(path, None)
