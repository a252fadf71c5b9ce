"""The cgroup that holds all of one run, and the janitor who clears up after it."""

import fcntl
import os
import shutil
import signal
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "with-systemd"
_SURELY_LOCKED = 10.0  # seconds after which a group that has an owner is locked by it


@dataclass(frozen=True)
class Group:
    path: Path
    boot_id: uuid.UUID

    def join(self) -> None:
        """Move this process in, while nothing is there yet."""
        (self.path / "cgroup.procs").write_text("0")

    def join_booted(self) -> None:
        """Move this process in beside the booted PID 1: only a leaf takes processes, and no other is sure to be one."""
        (self.path / "init.scope" / "cgroup.procs").write_text("0")

    def clear(self) -> None:
        """Kill what is left of the run, and remove its groups and the PrivateTmp= folders of its services."""
        for _ in range(500):
            try:
                (self.path / "cgroup.kill").write_text("1")
                for folder, _, _ in os.walk(self.path, topdown=False):
                    Path(folder).rmdir()
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.01)  # killed processes leave their group a moment later
        for private in Path("/tmp").glob(f"systemd-private-{self.boot_id.hex}-*"):
            shutil.rmtree(private, ignore_errors=True)


class Janitor:
    """A process that clears up when the one that made it is gone, however that went.

    It hangs on a pipe whose other end dies with its maker, and sits in a session of its own, out of reach of the
    terminal's signals and of those to the maker's process group.  A lock on the group says that it is on duty.
    """

    def __init__(self, root: Path) -> None:
        boot_id = uuid.uuid4()
        self.group = Group(root / f"{_PREFIX}.{boot_id.hex}", boot_id)
        self.group.path.mkdir()
        lock = os.open(self.group.path, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        waits, self._held = os.pipe()
        self._pid = os.fork()
        if self._pid:
            os.close(waits)
            os.close(lock)  # the janitor's copy holds it
            return
        try:
            os.close(self._held)
            os.setsid()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                signal.signal(number, signal.SIG_IGN)
            # It must hold no one's pipe open.
            nowhere = os.open("/dev/null", os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            os.read(waits, 1)
            self.group.clear()
        finally:
            os._exit(0)

    def dismiss(self) -> None:
        """Have it clear up now, and wait for that."""
        os.close(self._held)
        os.waitpid(self._pid, 0)


def sweep(root: Path) -> None:
    """Clear up after runs whose janitor was killed as well: those that are old enough to be locked and are not."""
    for path in root.glob(f"{_PREFIX}.*"):
        try:
            opened = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            if time.time() - os.fstat(opened).st_ctime > _SURELY_LOCKED:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                Group(path, uuid.UUID(path.name.rpartition(".")[2])).clear()
        except (BlockingIOError, ValueError):
            pass
        finally:
            os.close(opened)
