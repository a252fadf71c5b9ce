"""The kernel calls that Python 3.11 has no name for: namespaces and mounts."""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)

NEW_MOUNTS = 0x00020000
NEW_CGROUP = 0x02000000
NEW_UTS = 0x04000000
NEW_IPC = 0x08000000
NEW_PIDS = 0x20000000

NO_SUID, NO_DEV = 2, 4
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 16384, 1 << 18

_PR_SET_PDEATHSIG = 1
_MNT_DETACH = 2
_FSCONFIG_CMD_CREATE = 6
# Numbers shared by every architecture, as for all system calls since Linux 5.1.
_SYS_FSOPEN, _SYS_FSCONFIG, _SYS_FSMOUNT = 430, 431, 432
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}


class RefusedError(Exception):
    """The kernel said no; the text is one phrase that says to what."""


def _checked(what: str, call: Callable[[], int]) -> int:
    result = call()
    if result < 0:
        raise RefusedError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def unshare(flags: int) -> None:
    _checked("making namespaces", lambda: _libc.unshare(flags))


def enter(namespace: int) -> None:
    """Move into the namespace that the file descriptor names."""
    _checked("entering a namespace", lambda: _libc.setns(namespace, 0))


def die_with_parent(signal_number: int) -> None:
    _checked("prctl", lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0))


def mount(kind: str | None, target: str, *, source: str | None = None, flags: int = 0, options: str = "") -> None:
    def encoded(text: str | None) -> bytes | None:
        return None if text is None else os.fsencode(text)

    what = f"mounting {kind or source or 'its own'} on {target}"
    _checked(
        what,
        lambda: _libc.mount(
            encoded(source or kind or "none"), encoded(target), encoded(kind), ctypes.c_ulong(flags), encoded(options)
        ),
    )


def bind(source: str, target: str, *, recursive: bool = False) -> None:
    mount(None, target, source=source, flags=BIND | (RECURSIVE if recursive else 0))


def unmount(target: str) -> None:
    """Take away what is mounted there, with all that is mounted beneath it."""
    _checked(f"unmounting {target}", lambda: _libc.umount2(os.fsencode(target), _MNT_DETACH))


def cgroup_root() -> Path:
    """The unified hierarchy's root as this process may see it, through a mount that is attached nowhere.

    /sys/fs/cgroup may be read-only (a container), of the old kind, or absent (a chroot); this needs none of it.  The
    path holds for this process and for what it forks, until it is replaced by another program.
    """
    what = "opening the cgroup2 file system"
    context = _checked(what, lambda: _libc.syscall(_SYS_FSOPEN, b"cgroup2", 1))
    _checked(what, lambda: _libc.syscall(_SYS_FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0))
    root = _checked(what, lambda: _libc.syscall(_SYS_FSMOUNT, context, 1, 0))
    os.close(context)
    return Path("/proc/self/fd", str(root))


def own_private_root() -> None:
    """Cut this (fresh) mount namespace off from the one that it was copied from.

    In a chroot "/" is no mount point, and nothing but a mount point can be made private: so step out to the
    namespace's real root, and pivot the chroot's directory into its place.
    """
    was = os.open("/", os.O_PATH)
    enter(os.open("/proc/self/ns/mnt", os.O_RDONLY))
    mount(None, "/", flags=RECURSIVE | PRIVATE)
    if not os.path.samestat(os.fstat(was), Path("/").stat()):
        path = str(Path(f"/proc/self/fd/{was}").readlink())
        bind(path, path, recursive=True)
        os.chdir(path)
        number = _SYS_PIVOT_ROOT[os.uname().machine]
        _checked("changing the root", lambda: _libc.syscall(number, b".", b"."))
        unmount(".")
    os.chdir("/")
    os.close(was)
