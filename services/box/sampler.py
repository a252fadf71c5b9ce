"""The thread that reads the box at a steady beat."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from gpudeck.services.box.types import BoxSource, Demand, Snapshot
from gpudeck.services.errors import OperatorError

RETRY_S = 3.0  # between two tries to open a box that could not be read
_PATIENCE_S = 0.5  # how long stop() waits for a read in progress


class Sampler:
    """Opens a source, reads it every `interval` seconds, and hands each snapshot to `deliver`.

    `deliver` is called on the sampler's own thread, with a Snapshot, or with an OperatorError when the box can not be
    read; the same error is not delivered twice in a row, and opening is tried again every RETRY_S, so that a driver
    that comes back is found.
    """

    def __init__(
        self,
        source: BoxSource,
        deliver: Callable[[Snapshot | OperatorError], None],
        interval: float = 1.0,
        retry: float = RETRY_S,
        demand: Demand = Demand.ALL,
    ) -> None:
        self._source = source
        self._deliver = deliver
        self._interval = interval
        self._retry = retry
        self._demand = demand
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._told: str | None = None  # the error that was delivered last, until a read succeeds
        self._thread: threading.Thread | None = None

    @property
    def interval(self) -> float:
        """Seconds from the beginning of one read to that of the next; may be set while it runs."""
        return self._interval

    @interval.setter
    def interval(self, seconds: float) -> None:
        self._interval = seconds
        self._wake.set()

    @property
    def demand(self) -> Demand:
        """What is looked at, and so read; may be set while it runs, from any thread."""
        return self._demand

    @demand.setter
    def demand(self, demand: Demand) -> None:
        more = demand & ~self._demand
        self._demand = demand
        if more:
            self._wake.set()  # what is newly looked at should not wait for the next beat

    def start(self) -> None:
        """Begin.  A sampler runs once."""
        assert self._thread is None, "a sampler runs once"
        self._thread = threading.Thread(target=self._run, name="gpudeck-box", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Read now, not at the next beat."""
        self._wake.set()

    def stop(self) -> None:
        """End, in less than a second; no delivery begins afterwards.

        A driver call that hangs is left to the thread, which closes the source and ends when the call returns.
        """
        self._stopped.set()
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_PATIENCE_S)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._source.open()
                try:
                    self._read_until_stopped()
                finally:
                    self._source.close()
            except OperatorError as error:
                self._tell(error)
            except Exception as error:  # noqa: BLE001 (a defect must not freeze the screen in silence)
                self._tell(OperatorError(f"Reading the box failed inside gpudeck, please report it: {error!r}."))
            if not self._stopped.is_set():
                self._sleep(self._retry)

    def _read_until_stopped(self) -> None:
        due = time.monotonic()
        while not self._stopped.is_set():
            snapshot = self._source.read(self._demand)
            if self._stopped.is_set():
                return
            self._deliver(snapshot)
            self._told = None
            due += self._interval
            now = time.monotonic()
            if due < now:
                # A slow driver: beats that were missed are not caught up with.
                due = now
            self._sleep(due - now)
            due = min(due, time.monotonic())

    def _sleep(self, seconds: float) -> None:
        if self._wake.wait(seconds):
            self._wake.clear()

    def _tell(self, error: OperatorError) -> None:
        if not self._stopped.is_set() and str(error) != self._told:
            self._told = str(error)
            self._deliver(error)


def read_once(source: BoxSource, demand: Demand = Demand.NOTHING) -> Snapshot:
    """One snapshot, with what `demand` adds to it.  Raises OperatorError.

    It is read on a thread, so that Ctrl-C ends a command even while a driver call hangs.
    """
    outcomes: SimpleQueue[Snapshot | OperatorError] = SimpleQueue()
    sampler = Sampler(source, outcomes.put, interval=3600.0, demand=demand)
    sampler.start()
    try:
        outcome = outcomes.get()
    finally:
        sampler.stop()
    if isinstance(outcome, OperatorError):
        raise outcome
    return outcome
