"""What D-Bus and systemd refuse, told as sentences for an operator.

The remote errors of each situation were measured on systemd 252 and 257 with polkit 122 and 126.
"""

from gi.repository import Gio, GLib

from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

_SYSTEMD = "org.freedesktop.systemd1"
_DBUS = "org.freedesktop.DBus.Error"

_NO_RIGHTS = {f"{_DBUS}.InteractiveAuthorizationRequired", f"{_DBUS}.AccessDenied", f"{_DBUS}.AuthFailed"}
_NO_SYSTEMD = {f"{_DBUS}.ServiceUnknown", f"{_DBUS}.NameHasNoOwner", f"{_DBUS}.NoServer"}


class NoBusError(OperatorError):
    """No bus, or no systemd on it."""


class BusLostError(OperatorError):
    """The bus was there and went away."""


class NoAnswerError(OperatorError):
    """Something on the other side does not answer in time."""


class NoRightsError(OperatorError):
    """The operator may not do this."""


class NoUnitError(OperatorError):
    """There is no unit of that name."""


class UnitTakenError(OperatorError):
    """A unit of that name is there and is not gpudeck's."""


class JobFailedError(OperatorError):
    """systemd tried, and it did not work out."""


def remote_name(error: GLib.Error) -> str:
    """The D-Bus name of an error, "" for one that arose on this side."""
    return Gio.DBusError.get_remote_error(error) or ""


def connection_lost(error: GLib.Error) -> bool:
    return error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CLOSED) or remote_name(error) == f"{_DBUS}.Disconnected"


def worth_asking_again(error: GLib.Error) -> bool:
    """Whether a question (not an order) may be put once more: the bus restarted, or systemd re-executed itself."""
    return connection_lost(error) or remote_name(error) == f"{_DBUS}.NoReply"


def no_such_unit(error: GLib.Error) -> bool:
    return remote_name(error) in (f"{_SYSTEMD}.NoSuchUnit", f"{_SYSTEMD}.UnitNotFound")


def explained(error: GLib.Error, doing: str, scope: Scope) -> OperatorError:
    """`error`, met while `doing` (a phrase such as "start vllm-x.service"), as the sentence to show."""
    name = remote_name(error)
    said = message_of(error)
    user = " --user" if scope is Scope.USER else ""
    if connection_lost(error):
        return BusLostError(f"The D-Bus connection broke off while asked to {doing}: look at the state and try again.")
    if error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.TIMED_OUT) or name == f"{_DBUS}.Timeout":
        return NoAnswerError(f"systemd did not answer in time when asked to {doing}: see systemctl{user} status.")
    if name == f"{_DBUS}.NoReply":
        return NoAnswerError(
            f"No answer came when asked to {doing}: systemd was restarting, or polkit hangs "
            "(systemctl status polkit); try again."
        )
    if name in _NO_RIGHTS:
        return NoRightsError(
            f"You may not {doing}: run gpudeck as root, or have root install the rule that `gpudeck polkit` prints."
        )
    if no_such_unit(error):
        return NoUnitError(f"systemd knows no such unit when asked to {doing}: install the engine first.")
    if name == f"{_SYSTEMD}.UnitMasked":
        if "polkit" in said:
            return NoRightsError(f"You may not {doing}, since polkit is masked here: run gpudeck as root.")
        return JobFailedError(f"systemd was asked to {doing}, but {said.rstrip('.')}: systemctl{user} unmask it first.")
    if name in _NO_SYSTEMD or name.startswith(f"{_DBUS}.Spawn."):
        return NoBusError(f"No systemd answers on D-Bus when asked to {doing} ({said}).")
    return OperatorError(f"systemd refused to {doing}: {said}")


def message_of(error: GLib.Error) -> str:
    """What the other side said, without GLib's prefix."""
    message = str(error.message)
    prefix = f"GDBus.Error:{remote_name(error)}: "
    return printable(message.removeprefix(prefix).strip())
