"""Whose server answers on a port: an answer alone does not tell that it is this engine's."""

from contextlib import suppress
from pathlib import Path

from gpudeck.services.engine.ownership import engine_of
from gpudeck.services.engine.program import port_in_use
from gpudeck.services.engine.types import UnitState
from gpudeck.services.plan.types import EngineSpec

_LISTENING = "0A"  # TCP_LISTEN, as /proc/net/tcp writes it


def answers_itself(state: UnitState, port: int, proc: Path = Path("/proc")) -> bool:
    """Whether what listens on `port` is this engine's own process.

    False where nobody listens, where the engine has no process, and where a process that can be seen and is another's
    does.  Who can not be seen (another user's) is believed: only root sees all.
    """
    if state.main_pid is None:
        return False
    sockets = _listening_sockets(port, proc)
    if not sockets:
        return False
    owners = _owners(sockets, proc)
    if not owners:
        return True
    return any(pid == state.main_pid or engine_of(pid, proc) == state.name for pid in owners)


def port_trouble(spec: EngineSpec | None, state: UnitState | None) -> str | None:
    """Why a start by this spec would end at its port, naming who listens there; None where nothing is in the way.

    What listens there now and is the engine itself, in its present `state`, will have left.
    """
    if spec is None:
        return None
    host, port = spec.options.host, spec.options.port
    return None if state is not None and answers_itself(state, port) else port_in_use(host, port)


def _listening_sockets(port: int, proc: Path) -> set[str]:
    """The inodes of the sockets that listen on the port, IPv4's and IPv6's."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            rows = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found


def _owners(sockets: set[str], proc: Path) -> set[int]:
    """The processes that hold one of these sockets, as far as this user may see."""
    names = {f"socket:[{inode}]" for inode in sockets}
    return {int(folder.parent.name) for folder in proc.glob("[0-9]*/fd") if names & _opened(folder)}


def _opened(folder: Path) -> set[str]:
    """What a process has open; nothing where it may not be seen or is gone."""
    opened = set()
    with suppress(OSError):
        for link in folder.iterdir():
            with suppress(OSError):  # closed meanwhile
                opened.add(str(link.readlink()))
    return opened
