"""What happens to the cards between two readings: the driver's own events, waited for on a thread of their own."""

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from gpudeck.services.box.nvml.xid import sentence, xid_of
from gpudeck.services.box.types import BoxEvent, Severity

KEPT = 50
_AGAIN_S = 10.0  # the same event of the same card within this time is told once
_WAIT_MS = 200  # a wait can not be broken off, and the library can not be closed under it


class EventLog:
    """The last events of a box.  Any thread may tell one."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._events: deque[BoxEvent] = deque(maxlen=KEPT)

    def tell(self, severity: Severity, text: str, gpu: int | None = None, xid: int | None = None) -> None:
        """Note what happened now.  A storm of one event is told once in ten seconds."""
        event = BoxEvent(self._clock(), severity, text, gpu, xid)
        with self._lock:
            if not any(event.at - other.at < _AGAIN_S and other.text == event.text for other in self._events):
                self._events.append(event)

    def last(self) -> tuple[BoxEvent, ...]:
        """Oldest first, at most KEPT."""
        with self._lock:
            return tuple(self._events)


class EventWatch:
    """Waits for the driver's events on these cards (handles by index), and tells them to the log."""

    def __init__(self, nvml: Any, handles: Mapping[int, Any], log: EventLog) -> None:
        self._nvml = nvml
        self._handles = dict(handles)
        self._log = log
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpudeck-events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> bool:
        """End the wait; True when it has ended, so that the library may be closed."""
        self._stopped.set()
        self._thread.join(4 * _WAIT_MS / 1000)
        return not self._thread.is_alive()

    def _run(self) -> None:
        nvml = self._nvml
        try:
            events = nvml.nvmlEventSetCreate()
        except nvml.NVMLError:
            return  # a driver without events (WSL)
        try:
            if sum(self._register(handle, events) for handle in self._handles.values()):
                self._wait(events)
        finally:
            try:
                nvml.nvmlEventSetFree(events)
            except nvml.NVMLError:
                self._stopped.set()  # the library was closed under it

    def _register(self, handle: Any, events: Any) -> bool:
        """Ask for this card's events; False where it has none that matter."""
        nvml = self._nvml
        try:
            wanted = nvml.nvmlDeviceGetSupportedEventTypes(handle) & self._wanted()
            if wanted:
                nvml.nvmlDeviceRegisterEvents(handle, wanted, events)
        except nvml.NVMLError:
            return False
        return bool(wanted)

    def _wanted(self) -> int:
        """Xids, and what has no Xid of its own.  Clock and power state change all the time and are read anyway."""
        nvml = self._nvml
        wanted: int = (
            nvml.nvmlEventTypeXidCriticalError | nvml.nvmlEventTypeDoubleBitEccError | nvml.nvmlEventMigConfigChange
        )
        return wanted

    def _wait(self, events: Any) -> None:
        nvml = self._nvml
        indices = {_address(handle): index for index, handle in self._handles.items()}
        while not self._stopped.is_set():
            try:
                event = nvml.nvmlEventSetWait(events, _WAIT_MS)
            except nvml.NVMLError_Timeout:
                continue
            except nvml.NVMLError:
                # A lost card makes every wait fail at once.
                self._stopped.wait(_WAIT_MS / 1000)
                continue
            index = indices.get(_address(event.device))
            if index is not None:
                self._tell(index, event.eventType, event.eventData)

    def _tell(self, gpu: int, kind: int, data: int) -> None:
        nvml = self._nvml
        if kind == nvml.nvmlEventTypeXidCriticalError:
            self._log.tell(xid_of(data).severity, sentence(gpu, data), gpu, data)
        elif kind == nvml.nvmlEventTypeDoubleBitEccError:
            self._log.tell(Severity.ERROR, f"GPU {gpu}: a memory error could not be corrected.", gpu)
        else:
            self._log.tell(Severity.INFO, f"GPU {gpu}: its MIG devices were set up anew.", gpu)


def _address(handle: Any) -> int | None:
    """What a device handle points to.  Its index can not be asked for once the card is lost."""
    return ctypes.cast(handle, ctypes.c_void_p).value
