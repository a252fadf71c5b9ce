"""How the command comes in: its namespaces, its scope unit, its user, its environment."""

import os
import pwd
import subprocess
import time
from pathlib import Path
from typing import NoReturn

from booted import kernel
from booted.group import Group

_NAMESPACES = ("cgroup", "ipc", "uts", "mnt")
_SCOPE = "with-systemd.scope"


class NoEntryError(Exception):
    """The command can not be started; one sentence."""


def run_inside(command: list[str], *, group: Group, init: int, directory: str, user: str, setup: str) -> NoReturn:
    """Become `command` inside the systemd whose PID 1 is (out here) `init`.

    Raises NoEntryError, kernel.RefusedError or OSError.
    """
    group.join_booted()
    for opened in [os.open(f"/proc/{init}/ns/{name}", os.O_RDONLY) for name in _NAMESPACES]:
        kernel.enter(opened)
        os.close(opened)
    environment = dict(os.environ, WITH_SYSTEMD="1")
    for name in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "NOTIFY_SOCKET", "TMUX", "TMUX_PANE"):
        environment.pop(name, None)
    if setup:
        subprocess.run(["/bin/sh", "-c", setup], check=True, env=environment, cwd=directory)
    account = _lingering(user) if user else None
    _enter_scope()
    if account:
        os.initgroups(account.pw_name, account.pw_gid)
        os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
        os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
        runtime = f"/run/user/{account.pw_uid}"
        environment |= {
            "HOME": account.pw_dir,
            "USER": account.pw_name,
            "LOGNAME": account.pw_name,
            "SHELL": account.pw_shell,
            "XDG_RUNTIME_DIR": runtime,
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus",
        }
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "MAIL"):
            environment.pop(name, None)
    # The machine's /tmp may hold a tmux server of outside.
    environment["TMUX_TMPDIR"] = environment.get("XDG_RUNTIME_DIR", "/run")
    try:
        os.chdir(directory)
    except OSError as error:
        who = user or "root"
        raise NoEntryError(
            f"{who} can not enter {directory} ({error.strerror}): run it from a folder that {who} may read"
        ) from None
    # By way of sh, for its exit codes: 127 not found, 126 not executable.
    os.execve("/bin/sh", ["sh", "-c", 'exec "$@"', "sh", *command], environment)


def _quiet(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise NoEntryError(f"{command[0]} failed: {said[-1] if said else f'exit code {done.returncode}'}")


def _lingering(user: str) -> pwd.struct_passwd:
    """The account, made in the throw-away /etc if it is missing, with its systemd and its bus up."""
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        _quiet("useradd", "--create-home", "--home-dir", f"/var/lib/{user}", "--shell", "/bin/sh", user)
        account = pwd.getpwnam(user)
    _quiet("loginctl", "enable-linger", user)
    _quiet("systemctl", "start", f"user@{account.pw_uid}.service")
    if not Path(f"/run/user/{account.pw_uid}/bus").exists():
        raise NoEntryError(f"{user} has no session bus here: install libpam-systemd and dbus-user-session")
    return account


def _enter_scope() -> None:
    """Have systemd move this process into a scope unit of its own."""
    _quiet(
        *("busctl", "--quiet", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1"),
        *("org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))", _SCOPE, "replace"),
        *("2", "PIDs", "au", "1", _pid_inside(), "Slice", "s", "system.slice", "0"),
    )
    end = time.monotonic() + 10
    while not Path("/proc/self/cgroup").read_text().strip().endswith(_SCOPE):
        if time.monotonic() > end:
            raise NoEntryError("systemd did not start the scope for the command")
        time.sleep(0.001)


def _pid_inside() -> str:
    return str(Path("/proc/self").readlink())
