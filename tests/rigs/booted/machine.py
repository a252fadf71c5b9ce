"""What the booted systemd sees of the machine: the mounts of its namespace, the units it starts, and its start."""

import os
import shutil
import stat
import uuid
from pathlib import Path
from typing import NoReturn

from booted import kernel
from booted.kernel import bind, mount

THROWN_AWAY = ("etc", "var", "usr")
HIDDEN = ("dev", "proc", "sys")

_OURS = Path("/run/with-systemd")
_UNITS = Path("/usr/lib/systemd/system")
# Units that would reach for the machine: its /tmp, its modules, its one audit socket.
_MASKED = ("tmp.mount", "modprobe@.service", "systemd-journald-audit.socket")
_STARTED = {
    "sysinit.target": ("systemd-journald.service", "systemd-journal-flush.service"),
    "sockets.target": ("systemd-journald.socket", "systemd-journald-dev-log.socket", "dbus.socket"),
    "multi-user.target": ("dbus.service", "systemd-logind.service", "systemd-user-sessions.service"),
}
_NO_NODES = {"console", "kmsg", "log", "initctl", "pts", "shm", "mqueue", "hugepages"}


def become_systemd(*, boot_id: uuid.UUID, ready: str, working_directory: str, boot_log: bool) -> NoReturn:
    """Lay out the machine in this process's own mount namespace, and become its PID 1.

    `ready` is the abstract socket that is told READY=1.  Raises kernel.RefusedError or OSError where the machine
    does not allow it.
    """
    kernel.own_private_root()
    here = os.open(working_directory, os.O_PATH)
    mount("proc", "/proc")
    mount("tmpfs", "/run", flags=kernel.NO_SUID | kernel.NO_DEV, options="mode=755")
    _overlay_what_is_thrown_away()
    _bind_working_directory(here, working_directory)
    _lay_out_dev()
    _lay_out_cgroups_and_sysctl(boot_id)
    _lay_out_etc_and_var()
    _choose_units()
    os.chdir("/")
    _exec(ready, boot_log)


def _overlay_what_is_thrown_away() -> None:
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    # A container's /etc/resolv.conf is a mount of its own, and an overlay shows only what lies beneath.
    kept = [(os.open(path, os.O_PATH), path) for path in mounted if path.startswith("/etc/")]
    for name in THROWN_AWAY:
        upper, work = _OURS / name / "upper", _OURS / name / "work"
        upper.mkdir(parents=True)
        work.mkdir()
        mount("overlay", f"/{name}", options=f"lowerdir=/{name},upperdir={upper},workdir={work}")
    for opened, path in kept:
        bind(f"/proc/self/fd/{opened}", path)
        os.close(opened)


def _bind_working_directory(opened: int, path: str) -> None:
    """A checkout under /var or /usr stays the machine's own: what the command writes there is kept."""
    if path.split("/")[1] in (*THROWN_AWAY, "run"):
        Path(path).mkdir(parents=True, exist_ok=True)
        bind(f"/proc/self/fd/{opened}", path, recursive=True)
    os.close(opened)


def _lay_out_dev() -> None:
    """A /dev with the machine's nodes, but without its console, kernel log and /dev/log."""
    dev = _OURS / "dev"
    dev.mkdir()
    mount("tmpfs", str(dev), flags=kernel.NO_SUID, options="mode=755")
    _copy_nodes(Path("/dev"), dev)
    for name in ("console", "kmsg"):
        os.mknod(dev / name, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    for name in ("pts", "shm", "mqueue", "hugepages"):
        (dev / name).mkdir()
    if os.path.ismount("/dev/pts"):
        bind("/dev/pts", str(dev / "pts"))
    else:
        mount("devpts", str(dev / "pts"), options="ptmxmode=666,mode=620,gid=5")
    mount("tmpfs", str(dev / "shm"), flags=kernel.NO_SUID | kernel.NO_DEV, options="mode=1777")
    bind(str(dev), "/dev", recursive=True)


def _copy_nodes(source: Path, target: Path) -> None:
    for entry in os.scandir(source):
        if source == Path("/dev") and entry.name in _NO_NODES:
            continue
        found = entry.stat(follow_symlinks=False)
        copy = target / entry.name
        if stat.S_ISLNK(found.st_mode):
            copy.symlink_to(Path(entry.path).readlink())
        elif stat.S_ISDIR(found.st_mode):
            copy.mkdir()
            _copy_nodes(Path(entry.path), copy)
        elif stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
            os.mknod(copy, found.st_mode, found.st_rdev)
            os.chown(copy, found.st_uid, found.st_gid)
            copy.chmod(stat.S_IMODE(found.st_mode))


def _lay_out_cgroups_and_sysctl(boot_id: uuid.UUID) -> None:
    if not Path("/sys/fs/cgroup").is_dir():
        mount("sysfs", "/sys")
    elif os.path.ismount("/sys/fs/cgroup"):
        kernel.unmount("/sys/fs/cgroup")  # one file system is not mounted over itself
    mount("cgroup2", "/sys/fs/cgroup")
    bind("/proc/sys", "/proc/sys")
    mount(None, "/proc/sys", flags=kernel.REMOUNT | kernel.BIND | kernel.READ_ONLY)
    # journalctl -b and the names of PrivateTmp= folders go by it.
    own = _OURS / "boot_id"
    own.write_text(f"{boot_id}\n")
    bind(str(own), "/proc/sys/kernel/random/boot_id")


def _lay_out_etc_and_var() -> None:
    for path in ("/etc/systemd/system", "/var/log/journal"):
        Path(path).mkdir(parents=True, exist_ok=True)
        mount("tmpfs", path, options="mode=755")
    # Persistent journals, since only those are split by user.
    shutil.chown("/var/log/journal", group="systemd-journal")
    Path("/var/log/journal").chmod(0o2755)
    machine_id = Path("/etc/machine-id")
    if not machine_id.exists() or not machine_id.read_text().strip():
        machine_id.unlink(missing_ok=True)
        machine_id.write_text(f"{uuid.uuid4().hex}\n")


def _choose_units() -> None:
    """Leave every unit startable, but have only the bus, the journal and logind started.

    Above all not systemd-tmpfiles-setup.service: Debian's `D /tmp` would empty the machine's /tmp.
    """
    for wants in _UNITS.glob("*.wants"):
        shutil.rmtree(wants)
    shutil.rmtree("/usr/lib/systemd/system-generators", ignore_errors=True)
    run = Path("/run/systemd/system")
    for target, units in _STARTED.items():
        wants = run / f"{target}.wants"
        wants.mkdir(parents=True)
        for unit in units:
            (wants / unit).symlink_to(_UNITS / unit)
    for unit in _MASKED:
        (run / unit).symlink_to("/dev/null")
    for folder in ("/run/lock", "/run/user"):
        Path(folder).mkdir()
    journald = Path("/run/systemd/journald.conf.d/with-systemd.conf")
    journald.parent.mkdir()
    journald.write_text("[Journal]\nAudit=no\nReadKMsg=no\n")


def _exec(ready: str, boot_log: bool) -> NoReturn:
    nowhere = os.open("/dev/null", os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(2 if boot_log else nowhere, 1)
    if not boot_log:
        os.dup2(nowhere, 2)
    log = ("--log-target=console", "--show-status=yes") if boot_log else ("--log-target=journal", "--show-status=no")
    environment = {
        "container": "with-systemd",
        "LANG": "C.UTF-8",
        "NOTIFY_SOCKET": f"@{ready}",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }
    os.execve("/usr/lib/systemd/systemd", ["systemd", "--system", "--unit=multi-user.target", *log], environment)
