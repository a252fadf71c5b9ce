"""Which engine a process belongs to, told by what it can not shed by itself."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
DOCKER = Path("/var/lib/docker/containers")  # a folder for each container, with its description, for root alone
UNIT_VARIABLE = "GPUDECK_UNIT"  # the embedded runner sets it in every process of an engine

# The last service in a control group's path: /system.slice/vllm-coder.service, or a user's
# /user.slice/user-1000.slice/user@1000.service/app.slice/vllm-coder.service.
_UNIT = re.compile(r"(?:vllm-|gpudeck-demo-)(?P<name>[^/\n]+)\.service")
_SERVICE = re.compile(r"/(?P<name>[^/\n]+)\.service(?=/|\n|$)")
# Services below which anything may run: what runs there is not theirs.
_HOSTS_OF_ANYTHING = re.compile(
    r"user@\d+|(?:ssh|sshd|cron|crond|atd|getty|serial-getty|docker|containerd|podman|slurmd|supervisor|gdm|lightdm)(?:@.*)?"
)
# docker-<id>.scope and libpod-<id>.scope under systemd, /docker/<id> without; cri-containerd-<id>.scope in a cluster.
_CONTAINER = re.compile(r"(?:docker|libpod|crio|cri-containerd|nerdctl)[-/](?P<id>[0-9a-f]{64})(?=[./\n]|$)")
_SHORT_ID = 12  # as many digits as `docker ps` shows
# `vllm serve`, the module that it stands for, and the titles that vLLM gives its processes.
_VLLM = re.compile(rb"(?:^|/|\0)vllm\0serve\0|vllm\.entrypoints\.|^VLLM::")

_FURTHEST = 8  # parents that are asked; a worker is three below the unit's main process


@dataclass(frozen=True, slots=True)
class _Relative:
    """A process or one of its parents, as far as it can be read."""

    cgroup: bytes
    environment: bytes
    command: bytes


def engine_of(pid: int, proc: Path = PROC, docker: Path = DOCKER) -> str | None:
    """The name of the engine that the process belongs to; None where it belongs to none or can not be seen.

    Asked are the process and its parents: a worker whose title is written over its environment has a parent that still
    has one.  Of units that gpudeck did not name only those count that run a vLLM; such a unit is the engine's name.
    A container hangs below Docker's own service and not below the unit whose `docker run` asked for it: a vLLM in
    there is called after the container.
    """
    family = list(_family(pid, proc))
    for relative in family:
        name = engine_in(relative.cgroup, relative.environment)
        if name is not None:
            return name
    if any(_VLLM.search(relative.command) for relative in family):
        services = (service_in(relative.cgroup) for relative in family)
        containers = (container_in(relative.cgroup, docker) for relative in family)
        return next(filter(None, (*services, *containers)), None)
    return None


def container_of(pid: int, proc: Path = PROC, docker: Path = DOCKER) -> str | None:
    """The container that a process runs in, "container gemma"; None for one of the machine's own."""
    return container_in(_read(proc / str(pid) / "cgroup"), docker)


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


def service_in(cgroup: bytes) -> str | None:
    """The innermost service of a control group's path, without `.service`; None below services that host anything."""
    found = _SERVICE.findall(cgroup.decode("utf-8", "replace"))
    return None if not found or _HOSTS_OF_ANYTHING.fullmatch(found[-1]) else str(found[-1])


def container_in(cgroup: bytes, docker: Path = DOCKER) -> str | None:
    """ "container gemma" for a control group of a container's; its short id where Docker's notes can not be read."""
    found = _CONTAINER.findall(cgroup.decode("utf-8", "replace"))
    if not found:
        return None
    try:
        told = json.loads((docker / found[-1] / "config.v2.json").read_bytes())
        name = str(told["Name"]).removeprefix("/")
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        name = ""
    return f"container {name or found[-1][:_SHORT_ID]}"


def _family(pid: int, proc: Path) -> Iterator[_Relative]:
    for _ in range(_FURTHEST):
        folder = proc / str(pid)
        cgroup = _read(folder / "cgroup")
        yield _Relative(cgroup, _read(folder / "environ"), _read(folder / "cmdline"))
        # The name stands in parentheses and may itself hold any character (proc_pid_stat(5)).
        fields = _read(folder / "stat").rpartition(b")")[2].split()
        if len(fields) < 2 or int(fields[1]) <= 1:
            return
        pid = int(fields[1])


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
