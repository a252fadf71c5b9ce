"""The cgroup that holds all of one run, and the janitor who clears up after it."""

import contextlib
import os
import shutil
import signal
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "with-systemd"


@dataclass(frozen=True)
class Group:
    path: Path
    boot_id: uuid.UUID

    def join(self) -> None:
        """Move this process in, while nothing is there yet."""
        (self.path / "cgroup.procs").write_text("0")

    def join_booted(self) -> None:
        """Move this process in beside the booted PID 1: no other group is sure to be a leaf, and only leaves take any."""
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
        for folder in Path("/tmp").glob(f"systemd-private-{self.boot_id.hex}-*"):
            shutil.rmtree(folder, ignore_errors=True)


class Janitor:
    """A process that clears up when the one that made it is gone, however that went.

    It hangs on a pipe whose other end dies with its maker, and sits in a session of its own, out of reach of the
    terminal's signals and of those to the maker's process group.
    """

    def __init__(self, root: Path) -> None:
        boot_id = uuid.uuid4()
        waits, self._held = os.pipe()
        self._pid = os.fork()
        name = f"{_PREFIX}.{self._pid or os.getpid()}.{boot_id.hex}"
        self.group = Group(root / name, boot_id)
        if self._pid:
            os.close(waits)
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
    """Clear up after runs whose janitor was killed as well."""
    for path in root.glob(f"{_PREFIX}.*.*"):
        _, pid, boot_id = path.name.split(".")
        if not Path("/proc", pid).exists():
            with contextlib.suppress(ValueError):
                Group(path, uuid.UUID(boot_id)).clear()
