"""How much is free on each disk, asked where a dead network mount can hang only a thread that nobody waits for."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gpudeck.services.host.types import Disk, Keeps

PATIENCE_S = 2.0


Answer = tuple[int, Disk]  # the file system's device number, and what it tells


class Disks:
    """Reads the disks of some folders, each file system once for each thing that is kept there."""

    def __init__(
        self,
        folders: Sequence[tuple[Path, Keeps]],
        patience: float = PATIENCE_S,
        ask: "Callable[[Path, Keeps], Answer | None] | None" = None,
    ) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._patience = patience
        self._ask = ask or _disk
        self._asking: dict[tuple[Path, Keeps], _Asking] = {}

    def read(self) -> tuple[Disk, ...]:
        """The disks now.  One that does not answer in time has no figures, and is not asked again until it does."""
        for folder in self._folders:
            if folder not in self._asking or self._asking[folder].done.is_set():
                self._asking[folder] = _Asking(self._ask, *folder)
        end = time.monotonic() + self._patience
        found: dict[tuple[int | str, Keeps], Disk] = {}
        for (path, keeps), asking in self._asking.items():
            if not asking.done.wait(max(end - time.monotonic(), 0)):
                found[str(path), keeps] = Disk(str(path), keeps)
            elif asking.answer is not None:
                device, disk = asking.answer
                found.setdefault((device, keeps), disk)
        return tuple(found.values())


class _Asking:
    """One folder asked on a thread of its own: a statvfs on a mount whose server is gone may never return."""

    def __init__(self, ask: Callable[[Path, Keeps], Answer | None], path: Path, keeps: Keeps) -> None:
        self.done = threading.Event()
        self.answer: Answer | None = None
        threading.Thread(target=self._run, args=(ask, path, keeps), name="gpudeck-disk", daemon=True).start()

    def _run(self, ask: Callable[[Path, Keeps], Answer | None], path: Path, keeps: Keeps) -> None:
        try:
            self.answer = ask(path, keeps)
        finally:
            self.done.set()


def _disk(path: Path, keeps: Keeps) -> Answer | None:
    """The file system under a folder.

    A folder of models that is not there is none that this machine uses; one that is written to is made when it is
    needed, and lies where the nearest folder above it lies.
    """
    for folder in (path, *path.parents):
        try:
            told = os.statvfs(folder)
            device = folder.stat().st_dev
        except OSError:
            if keeps is Keeps.MODELS:
                return None
            continue
        read_only = bool(told.f_flag & os.ST_RDONLY)
        return device, Disk(str(path), keeps, told.f_frsize * told.f_blocks, told.f_frsize * told.f_bavail, read_only)
    return None
