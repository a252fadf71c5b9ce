"""What an engine is kept from, as far as vLLM and the driver's library bear it; docs/units.md has what was left out.

At system scope only: a user's own systemd can set up none of the mounts, and the rest would bring NoNewPrivileges.
"""

from collections.abc import Mapping

from gpudeck.services.engine.quoting import word
from gpudeck.services.engine.unit_line import UnitLine

_READ_ONLY = ("/usr/", "/etc/", "/boot/", "/efi/")  # systemd.exec(5), ProtectSystem=full
_FOLDERS = ("_HOME", "_CACHE", "_CACHE_ROOT", "_DIR")  # how variables end that name a folder to be written to

_MOUNTS = (
    UnitLine("ProtectSystem=full", "/usr, /boot and /etc are read-only; caches and models lie elsewhere."),
    UnitLine("ProtectControlGroups=yes", "It can not change what systemd allots."),
)
# The system calls are filtered, for which systemd gives up new privileges: only root's engines need none.
# Another account's need nvidia-modprobe, which is setuid, where nothing has loaded nvidia-uvm since the boot.
_AS_ROOT = (
    UnitLine("NoNewPrivileges=yes", "No program that it starts gains rights; as root nvidia-modprobe needs none."),
    UnitLine("LockPersonality=yes", "Its execution domain stays Linux's."),
    UnitLine("RestrictRealtime=yes", "vLLM asks for no real-time scheduling, which could starve the machine."),
    UnitLine("RestrictSUIDSGID=yes", "It makes no setuid files."),
)


def hardening(user: str | None, environment: Mapping[str, str]) -> list[UnitLine]:
    """The directives for an engine of `user` (None: root)."""
    lines = [*_MOUNTS, *(_AS_ROOT if user is None else ())]
    for name, value in environment.items():
        if name.endswith(_FOLDERS) and value.startswith(_READ_ONLY):
            lines.append(UnitLine(f"ReadWritePaths={word('-' + value)}", f"{name} lies where all else is read-only."))
    return lines
