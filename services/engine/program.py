"""Where vLLM is on this machine, and which ports are free for it."""

import errno
import os
import shlex
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

# Where its guides, and those who follow them, put vLLM's own environment.  "*" is any one name.
_PLACES = (
    "~/vllm/.venv/bin",
    "~/vllm/venv/bin",
    "~/vllm/bin",
    "~/vllm-env/bin",
    "~/.venv/bin",
    "~/venv/bin",
    "~/.local/bin",
    "/opt/vllm/bin",
    "/opt/vllm/venv/bin",
    "/opt/vllm/.venv/bin",
    "/opt/venv/bin",
    "/usr/local/bin",
    "~/miniconda3/envs/*/bin",
    "~/miniforge3/envs/*/bin",
    "~/anaconda3/envs/*/bin",
    "/opt/conda/bin",
    "/opt/conda/envs/*/bin",
)
_MAX_PORT = 65535


def find_vllm(environment: Mapping[str, str] = os.environ) -> tuple[str, ...] | None:
    """The command that stands before `serve`, its first word an absolute path; None where no vLLM is found.

    $GPUDECK_VLLM (a command, with arguments where they are needed) wins; then PATH, the environment that gpudeck itself
    runs in, and the usual places.  Raises OperatorError where $GPUDECK_VLLM can not be run.
    """
    if given := environment.get("GPUDECK_VLLM", "").strip():
        return _given(given, environment)
    if found := shutil.which("vllm", path=environment.get("PATH", os.defpath)):
        return (str(Path(found).absolute()),)
    return next(((str(program),) for program in _usual(environment) if os.access(program, os.X_OK)), None)


def _given(command: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    shown = printable(command[:200])
    try:
        program, *words = shlex.split(command)
    except ValueError:
        raise OperatorError(f"GPUDECK_VLLM is no command ({shown}): mend its quotes.") from None
    found = shutil.which(os.path.expanduser(program), path=environment.get("PATH", os.defpath))  # noqa: PTH111
    if found is None:
        raise OperatorError(f"GPUDECK_VLLM names {shown}, which can not be run: give the path of a vllm program.")
    return (str(Path(found).absolute()), *words)


def _usual(environment: Mapping[str, str]) -> Iterator[Path]:
    yield Path(sys.executable).parent / "vllm"
    home = environment.get("HOME") or "/nonexistent"
    for place in _PLACES:
        directory = Path(place.replace("~", home, 1))
        if "*" in directory.parts:
            at = directory.parts.index("*")
            yield from sorted(Path(*directory.parts[:at]).glob(str(Path(*directory.parts[at:], "vllm"))))
        else:
            yield directory / "vllm"


def port_in_use(host: str, port: int) -> str | None:
    """A sentence that says why an engine can not listen there, naming who does; None where it can.

    Tried by binding, as vLLM itself does, and so also true for what another user runs.
    """
    where = f"{host}:{port}"
    if not 0 < port <= _MAX_PORT:
        return f"{port} is no port: choose one from 1 to {_MAX_PORT}."
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return f"{printable(host)!r} is no address of this machine: use 127.0.0.1, or 0.0.0.0 for every interface."
    for family, kind, protocol, _, address in addresses:
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(address)
                tried.listen(1)
            except OSError as error:
                return _refused(error, printable(where), port)
    return None


def _refused(error: OSError, where: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        holder = _holder(port)
        by = f" by {holder}" if holder else ""
        return f"Port {port} is already used{by}: choose another port, or stop that first."
    if error.errno == errno.EACCES:
        return f"Port {port} may only be used by root: choose one from 1024 on."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{where} is no address of this machine: use 127.0.0.1, or 0.0.0.0 for every interface."
    return f"Nothing can listen on {where}: {error.strerror}."


def _holder(port: int) -> str | None:
    """ "python3 (pid 12)": who listens there, as far as this user may see."""
    import psutil

    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port:
                if connection.pid is None:
                    return None
                return f"{printable(psutil.Process(connection.pid).name())} (pid {connection.pid})"
    except (psutil.Error, OSError):
        return None
    return None


def free_port(start: int = 8000, host: str = "127.0.0.1") -> int:
    """The first port from `start` on that an engine can listen on.  Raises OperatorError where there is none."""
    for port in range(max(start, 1), min(start + 1000, _MAX_PORT + 1)):
        if port_in_use(host, port) is None:
            return port
    raise OperatorError(f"No port from {start} on is free on {printable(host)}: choose a host and port yourself.")
