"""Changes of embedded engines, told as they happen."""

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from gpudeck.services.engine.processes import Process
from gpudeck.services.engine.types import UnitState

# The ends of supervisors wake the watcher at once; what other gpudecks begin is seen at this pace.
_LOOK_S = 1.0

Listener = Callable[[UnitState], None]


class Watcher:
    """Calls listeners on a thread of its own at every change of an engine; the thread runs while there are any."""

    def __init__(
        self, look: Callable[[], tuple[UnitState, ...]], supervisors: Callable[[], tuple[Process, ...]]
    ) -> None:
        """`look` gives every engine's state, `supervisors` the processes whose end changes one."""
        self._look = look
        self._supervisors = supervisors
        self._listeners: list[Listener] = []
        self._guard = threading.Lock()
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._thread: threading.Thread | None = None
        self._closed = False

    def add(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of every engine that there is, and then of changes; returns what ends that."""
        with self._guard:
            self._listeners.append(listener)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="embedded engines", daemon=True)
                self._thread.start()
        self.wake()

        def end() -> None:
            with self._guard, suppress(ValueError):
                self._listeners.remove(listener)

        return end

    def wake(self) -> None:
        """Look now."""
        with suppress(BlockingIOError, OSError):
            os.write(self._wake_write, b"!")

    def close(self) -> None:
        with self._guard:
            thread, self._closed = self._thread, True
            self._listeners.clear()
        self.wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join(2.0)
        for descriptor in (self._wake_read, self._wake_write):
            with suppress(OSError):
                os.close(descriptor)

    def _run(self) -> None:
        told: dict[Listener, dict[str, UnitState]] = {}
        while True:
            states = {state.unit: state for state in self._look()}
            with self._guard:
                if self._closed:
                    return
                listeners = list(self._listeners)
            told = {listener: told.get(listener, {}) for listener in listeners}
            for listener, known in told.items():
                for unit, state in states.items():
                    if known.get(unit) != state:
                        known[unit] = state
                        listener(state)
                for unit in known.keys() - states.keys():
                    last = known.pop(unit)
                    listener(replace(last, active="inactive", sub="dead", main_pid=None, gone=True))
            self._wait()

    def _wait(self) -> None:
        waiter = select.poll()
        waiter.register(self._wake_read, select.POLLIN)
        handles: list[int] = []
        try:
            for supervisor in self._supervisors():
                with suppress(OSError):  # gone already, or a kernel before 5.3: the next look tells
                    handles.append(os.pidfd_open(supervisor.pid))
                    waiter.register(handles[-1], select.POLLIN)
            waiter.poll(_LOOK_S * 1000)
        finally:
            for handle in handles:
                os.close(handle)
        with suppress(BlockingIOError, OSError):
            os.read(self._wake_read, 4096)
