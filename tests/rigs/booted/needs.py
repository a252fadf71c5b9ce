"""What a machine must have before a systemd can be booted on it, each lack told in one sentence."""

import os
import shutil
import sys
from pathlib import Path

_PROGRAMS = {
    "/usr/lib/systemd/systemd": "systemd",
    "/usr/lib/systemd/systemd-logind": "systemd",
    "/usr/bin/busctl": "systemd",
    "/usr/bin/journalctl": "systemd",
    "/usr/bin/dbus-daemon": "dbus",
    "/usr/lib/systemd/system/dbus.service": "dbus",
}


def missing(working_directory: str, user: str, hidden: tuple[str, ...], thrown_away: tuple[str, ...]) -> str | None:
    """The first thing that is missing, as a sentence with the way out; None when a boot may be tried."""
    if sys.platform != "linux":
        return "this is no Linux, and systemd runs on nothing else"
    if os.geteuid():
        return "only root can make the namespaces: run it with sudo"
    for path, package in _PROGRAMS.items():
        if not Path(path).exists():
            return f"{path} is missing: apt-get install {package}"
    if user and not shutil.which("useradd"):
        return "useradd is missing: apt-get install passwd"
    if not Path("/proc/self/ns/mnt").exists():
        return "/proc is not mounted: mount -t proc proc /proc"
    if "cgroup2" not in Path("/proc/filesystems").read_text().split():
        return "this kernel has no cgroup2, and systemd needs it"
    top = working_directory.split("/")[1]
    if top in hidden:
        return f"{working_directory} is not the same inside: run it from another folder"
    if working_directory.strip("/") in (*thrown_away, "run"):
        return f"what is written to {working_directory} is thrown away inside: run it from another folder"
    return None
