"""Whether a user's own systemd, and with it their engines, outlives their logins: loginctl(1), enable-linger."""

import os
import pwd
from pathlib import Path

import pydbus
from gi.repository import GLib

from gpudeck.services.engine.systemd.bus import address_of
from gpudeck.services.engine.systemd.errors import NoRightsError, message_of, remote_name
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError

NOTES = "/var/lib/systemd/linger"  # where logind keeps note of it, in a file of each user's name
_LOGIND = "org.freedesktop.login1"
_PATH = "/org/freedesktop/login1"
_REFUSED = ("InteractiveAuthorizationRequired", "AccessDenied", "AuthFailed")
_SECONDS = 40.0  # a broken polkit is given up by the bus after 25 s


def lingers() -> bool:
    """Whether this user's systemd outlives their logins."""
    return Path(NOTES, _name()).exists()


def let_linger() -> None:
    """Ask logind for it.  Raises OperatorError where it refuses; who may is polkit's to say."""
    try:
        bus = pydbus.connect(address_of(Scope.SYSTEM))
        try:
            manager = bus.get(_LOGIND, _PATH, timeout=_SECONDS)[f"{_LOGIND}.Manager"]
            # Without asking for a password: an agent would write over the panel.
            manager.SetUserLinger(os.getuid(), True, False, timeout=_SECONDS)
        finally:
            bus.con.close_sync(None)
    except GLib.Error as error:
        way_out = f"have root call `loginctl enable-linger {_name()}`"
        if remote_name(error).rpartition(".")[2] in _REFUSED:
            raise NoRightsError(f"logind does not let you outlive your logins by yourself: {way_out}.") from None
        raise OperatorError(f"logind can not be asked ({message_of(error)}): {way_out}.") from None


def _name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
