"""The thread that reads the machine while somebody looks."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from gpudeck.services.host.types import HostReading

BEAT_S = 5.0  # the machine moves slower than its cards
_PATIENCE_S = 0.5


class Reads(Protocol):
    def read(self) -> HostReading: ...


def open_host(model_roots: Sequence[Path]) -> Reads:
    """A reader of this machine and of the disks under these folders of models and the caches."""
    from gpudeck.services.host.places import kept
    from gpudeck.services.host.reader import HostReader

    return HostReader(kept(model_roots))


class HostSampler:
    """Hands a reading to `deliver`, on its own thread, at once and then every `beat` seconds while it is wanted.

    `open_reader` is called on that thread, at the first reading, so that psutil is loaded only when it is needed.
    """

    def __init__(
        self, open_reader: Callable[[], Reads], deliver: Callable[[HostReading], None], beat: float = BEAT_S
    ) -> None:
        self._open_reader = open_reader
        self._deliver = deliver
        self._beat = beat
        self._wanted = threading.Event()
        self._changed = threading.Event()  # ends the pause between two readings
        self._stopped = False
        self._thread: threading.Thread | None = None

    def show(self, wanted: bool) -> None:
        """Read from now on, or read nothing."""
        if wanted == self._wanted.is_set() or self._stopped:
            return
        if wanted:
            self._wanted.set()
        else:
            self._wanted.clear()
        self._changed.set()
        if wanted and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="gpudeck-host", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End, in less than a second; no delivery begins afterwards."""
        self._stopped = True
        self._wanted.set()
        self._changed.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        reader = self._open_reader()
        while not self._stopped:
            self._wanted.wait()
            self._changed.clear()
            reading = reader.read()
            if not self._stopped and self._wanted.is_set():
                self._deliver(reading)
            self._changed.wait(self._beat)
