"""A thread for calls that may hang: who waits for one can give up, and ask again later whether it came back."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class StillBusyError(Exception):
    """The job has not ended in time, and goes on."""


class OwnThread(Generic[T]):
    """Runs one job at a time, on a daemon thread that begins with the first and ends with `end`.

    Used by one other thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._began: float | None = None  # time.monotonic() when the job in hand was given
        self._value: T | None = None
        self._error: BaseException | None = None

    @property
    def idle(self) -> bool:
        """Whether no job is in hand, or its outcome waits to be taken."""
        return self._began is None or self._done.is_set()

    @property
    def busy_s(self) -> float:
        """How long the job in hand has been running; 0 when idle."""
        return 0.0 if self.idle or self._began is None else time.monotonic() - self._began

    def begin(self, job: Callable[[], T]) -> None:
        """Give a job to the idle thread; what the one before it left is forgotten."""
        assert self.idle, "one job at a time"
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._done.clear()
        self._value = self._error = None
        self._began = time.monotonic()
        self._jobs.put(job)

    def wait(self, seconds: float) -> None:
        """Give the job in hand that much time alone."""
        self._done.wait(seconds)

    def take(self, patience: float) -> T:
        """What the job returned, or what it raised.  Raises StillBusyError where it takes longer than `patience` s."""
        assert self._began is not None, "no job was given"
        if not self._done.wait(max(patience, 0.0)):
            raise StillBusyError
        value, error = self._value, self._error
        self._began = self._value = self._error = None
        if error is not None:
            try:
                raise error
            finally:
                del error  # the traceback holds this frame, which would hold the error
        return value  # type: ignore[return-value]

    @property
    def has_outcome(self) -> bool:
        """Whether a job has ended whose outcome was not taken."""
        return self._began is not None and self._done.is_set()

    def do(self, job: Callable[[], T], patience: float) -> T:
        """`begin` and `take`.  Raises StillBusyError at once where an earlier job still runs."""
        if not self.idle:
            raise StillBusyError
        self.begin(job)
        return self.take(patience)

    def end(self) -> None:
        """No more jobs.  The thread ends when the one in hand does, which this does not wait for."""
        self._jobs.put(None)
        if self._thread is not None and self.idle:
            self._thread.join(1.0)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._value = job()
            except BaseException as error:  # noqa: BLE001 (it is raised where the outcome is taken)
                self._error = error
            # A hung job that comes back must not keep its closure, and with it a driver's handle, alive.
            job = None
            self._done.set()
