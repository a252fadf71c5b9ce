"""One private D-Bus connection to one systemd, with the thread on which its signals arrive."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pydbus
from gi.repository import Gio, GLib, GObject

from gpudeck.services.engine.systemd.errors import NoAnswerError

SYSTEMD = "org.freedesktop.systemd1"
PROPERTIES = "org.freedesktop.DBus.Properties"

CALL_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_CLOSE_SECONDS = 1.0

Value = TypeVar("Value")

# Every connection ever made, held by GLib's own count: 40 KB for each time that the bus went away.  That count must
# be above Python's one reference while messages arrive, and must never sink to nothing.  Otherwise GDBus' thread, which
# takes a reference under GDBus' lock, waits for the GIL to tell Python's wrapper of it, while a thread that frees a
# connection (the garbage collector, anywhere) has the GIL and waits for the lock.
_held: list[GObject.Value] = []
# Contexts of closed connections, to be used again: a connection that is kept keeps its context and that its descriptor.
_idle_contexts: list[GLib.MainContext] = []


class Connection:
    """Alive from its making until the bus goes away or `close`; then a new one must be made.

    Private, since pydbus' shared SystemBus() lets GLib end the whole process when the bus goes away.  Signals and
    `on_closed` arrive on a thread of its own; calls may be made from any.  Raises GLib.Error or NoAnswerError.
    """

    def __init__(self, address: str, on_closed: Callable[["Connection"], None]) -> None:
        self._on_closed = on_closed
        self._context = _idle_contexts.pop() if _idle_contexts else GLib.MainContext.new()
        self._loop = GLib.MainLoop.new(self._context, False)
        self._thread = threading.Thread(target=self._run, name="systemd-signals", daemon=True)
        self._proxies: dict[str, Any] = {}
        self._subscriptions: list[Any] = []
        self._gone = threading.Event()
        self.alive = True
        self._thread.start()
        try:
            self.bus = self.on_signal_thread(lambda: self._connect(address), _CONNECT_SECONDS)
            self.manager = self.bus.get(SYSTEMD, timeout=_CONNECT_SECONDS)[f"{SYSTEMD}.Manager"]
        except BaseException:
            self.close()
            raise

    def _run(self) -> None:
        self._context.push_thread_default()
        try:
            self._loop.run()
            # What GLib has yet to deliver holds the connection, which holds this context: neither would ever be freed.
            while self._context.iteration(False):
                pass
        finally:
            self._context.pop_thread_default()

    def _connect(self, address: str) -> Any:
        bus = pydbus.connect(address)
        _held.append(GObject.Value(Gio.DBusConnection, bus.con))
        self._handler = bus.con.connect("closed", self._closed)
        return bus

    def _closed(self, *_: object) -> None:
        self._gone.set()
        was_alive, self.alive = self.alive, False
        if was_alive:
            self._on_closed(self)

    def keep(self, subscription: Any) -> None:
        """Hold a subscription of pydbus until the connection is closed."""
        self._subscriptions.append(subscription)

    def _let_go(self) -> None:
        """Break the circles through GLib that Python's collector does not see."""
        while self._subscriptions:
            self._subscriptions.pop().unsubscribe()
        bus = getattr(self, "bus", None)
        if bus is not None and bus.con.handler_is_connected(self._handler):
            bus.con.disconnect(self._handler)

    def on_signal_thread(self, function: Callable[[], Value], seconds: float = CALL_SECONDS) -> Value:
        """Run `function` where signals arrive: what it subscribes to is delivered there, in order.

        Raises what it raises, and NoAnswerError when that thread is stuck (a bus that accepts and says nothing).
        """
        done = threading.Event()
        values: list[Value] = []
        errors: list[BaseException] = []

        def run(*_: object) -> bool:
            try:
                values.append(function())
            except BaseException as error:  # noqa: BLE001, it is raised again on the thread that asked
                errors.append(error)
            done.set()
            return bool(GLib.SOURCE_REMOVE)

        source = GLib.Idle()
        source.set_callback(run)
        source.attach(self._context)
        if not done.wait(seconds):
            raise NoAnswerError("D-Bus does not answer: see systemctl status dbus.")
        if errors:
            raise errors[0]
        return values[0]

    def properties(self, path: str) -> Any:
        """The Properties interface of an object; kept, since making one asks systemd for its introspection."""
        proxy = self._proxies.get(path)
        if proxy is None:
            proxy = self._proxies[path] = self.bus.get(SYSTEMD, path, timeout=CALL_SECONDS)[PROPERTIES]
        return proxy

    def close(self) -> None:
        """Give the connection up and end its thread; safe on any thread but the signals', and more than once."""
        self.alive = False
        if not self._thread.is_alive():
            return
        bus = getattr(self, "bus", None)
        if bus is not None and not bus.con.is_closed():
            with contextlib.suppress(GLib.Error, NoAnswerError):
                self.on_signal_thread(lambda: bus.con.close_sync(None), _CLOSE_SECONDS)
        if bus is not None:
            # GLib sends word of the end into the loop, from a thread of its own: it must not come after the loop.
            self._gone.wait(_CLOSE_SECONDS)
        with contextlib.suppress(NoAnswerError):
            self.on_signal_thread(self._let_go, _CLOSE_SECONDS)
        self._loop.quit()
        self._thread.join(_CLOSE_SECONDS)
        # A thread that is stuck without an answer is left behind: it is a daemon.
        if not self._thread.is_alive():
            _idle_contexts.append(self._context)
