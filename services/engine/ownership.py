"""Which engine a process belongs to, told by what it can not shed by itself."""

import re
from pathlib import Path

UNIT_VARIABLE = "GPUDECK_UNIT"  # the embedded runner sets it in every process of an engine

# The last service in a control group's path: /system.slice/vllm-coder.service, or a user's
# /user.slice/user-1000.slice/user@1000.service/app.slice/vllm-coder.service.
_UNIT = re.compile(r"(?:vllm-|gpudeck-demo-)(?P<name>[^/\n]+)\.service")


def engine_of(pid: int, proc: Path = Path("/proc")) -> str | None:
    """The name of the engine that the process belongs to; None where it belongs to none or can not be seen."""
    return engine_in(_read(proc / str(pid) / "cgroup"), _read(proc / str(pid) / "environ"))


def engine_in(cgroup: bytes, environment: bytes) -> str | None:
    """The engine named by a control group's path or, under the embedded runner, by the process's environment."""
    units = [cgroup.decode("utf-8", "replace")]
    prefix = f"{UNIT_VARIABLE}=".encode()
    units += [
        entry[len(prefix) :].decode("utf-8", "replace")
        for entry in environment.split(b"\0")
        if entry.startswith(prefix)
    ]
    for text in units:
        found = list(_UNIT.finditer(text))
        if found:
            return found[-1]["name"]
    return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
