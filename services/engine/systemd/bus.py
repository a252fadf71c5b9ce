"""The way to one systemd, made anew whenever the bus comes back."""

import logging
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from gi.repository import GLib

from gpudeck.services.engine.systemd.connection import Connection
from gpudeck.services.engine.systemd.errors import (
    BusLostError,
    NoAnswerError,
    NoBusError,
    connection_lost,
    explained,
    message_of,
    worth_asking_again,
)
from gpudeck.services.engine.types import Scope

Value = TypeVar("Value")
log = logging.getLogger(__name__)

_PATIENCE = 3.0  # how long a question waits for a bus that is restarting
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0


def address_of(scope: Scope) -> str:
    """The address of the bus on which the scope's systemd answers.

    Raises NoBusError where a plain user has no bus of their own (no login session and no lingering).
    """
    if scope is Scope.SYSTEM:
        return os.environ.get("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/run/dbus/system_bus_socket")
    address = os.environ.get("DBUS_SESSION_BUS_ADDRESS")
    if address:
        return address
    # su and cron leave the variables out, though a lingering user's bus is there.
    socket = os.path.join(os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}"), "bus")  # noqa: PTH118
    if not os.path.exists(socket):  # noqa: PTH110
        raise NoBusError(
            "There is no D-Bus session bus for you: install dbus-user-session, and have root call "
            "loginctl enable-linger for you."
        )
    return f"unix:path={socket}"


class Bus:
    """Holds the present connection; when it breaks, a thread makes the next one.

    `prepare` is called with every new connection before anyone else gets it, `on_change` whenever the connection came
    or went (True: it is there); the latter on a thread of the bus.
    """

    def __init__(
        self, scope: Scope, *, prepare: Callable[[Connection], None], on_change: Callable[[bool], None]
    ) -> None:
        self.scope = scope
        self._prepare = prepare
        self._on_change = on_change
        self._state = threading.Condition()
        self._connection: Connection | None = None
        self._closing = threading.Event()
        connection = self._connected()
        if not connection.alive:
            raise NoBusError("D-Bus went away while it was connected to: see systemctl status dbus.")
        self._connection = connection

    @property
    def lost(self) -> bool:
        return self._connection is None

    def _connected(self) -> Connection:
        try:
            connection = Connection(address_of(self.scope), self._broken)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        except GLib.Error as error:
            where = "the system bus" if self.scope is Scope.SYSTEM else "your session bus"
            raise NoBusError(f"systemd can not be reached over {where}: {message_of(error)}") from None
        return connection

    def _broken(self, connection: Connection) -> None:
        with self._state:
            if self._connection is not connection:
                return
            self._connection = None
            self._state.notify_all()
        threading.Thread(target=self._reconnect, args=(connection,), name="systemd-reconnect", daemon=True).start()

    def _reconnect(self, broken: Connection) -> None:
        broken.close()
        self._tell(False)
        wait = _FIRST_WAIT
        while not self._closing.wait(wait):
            try:
                connection = self._connected()
            except (NoBusError, NoAnswerError):
                wait = min(wait * 2, _LONGEST_WAIT)
                continue
            with self._state:
                if self._closing.is_set() or not connection.alive:
                    connection.close()
                    continue
                self._connection = connection
                self._state.notify_all()
            self._tell(True)
            return

    def _tell(self, there: bool) -> None:
        try:
            self._on_change(there)
        except Exception:
            log.exception("after the bus %s", "came back" if there else "went away")

    def present(self) -> Connection:
        """The present connection; waits a little for a bus that is coming back, then raises BusLostError."""
        with self._state:
            self._state.wait_for(lambda: self._connection is not None or self._closing.is_set(), _PATIENCE)
            if self._connection is None:
                raise BusLostError("D-Bus went away and is not back yet: see systemctl status dbus.")
            return self._connection

    def ask(self, doing: str, question: Callable[[Connection], Value]) -> Value:
        """The answer to something that may be asked twice; raises OperatorError."""
        connection = self.present()
        try:
            return question(connection)
        except GLib.Error as error:
            if not worth_asking_again(error):
                raise explained(error, doing, self.scope) from None
            if connection_lost(error):
                self._broken(connection)  # the signal that says so may still be under way
        return self.order(doing, question)

    def order(self, doing: str, order: Callable[[Connection], Value]) -> Value:
        """The answer to something that must be asked once only; raises OperatorError."""
        try:
            return order(self.present())
        except GLib.Error as error:
            raise explained(error, doing, self.scope) from None

    def close(self) -> None:
        self._closing.set()
        with self._state:
            connection, self._connection = self._connection, None
            self._state.notify_all()
        if connection is not None:
            connection.close()
