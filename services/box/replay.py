"""A recorded or hand-written box, replayed: its frames in their own time, or steadily what it says."""

import time
from collections.abc import Callable
from pathlib import Path

from gpudeck.services.box.boxfile import BoxFile, load_box_file
from gpudeck.services.box.frames import frame_at
from gpudeck.services.box.types import Box, Snapshot


class ReplaySource:
    """A BoxSource over a box file.  A recording begins when it is opened, and begins anew at its end."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._file: BoxFile | None = None
        self._opened_at = 0.0

    def open(self) -> Box:
        """Load the file.  Raises BoxFileError."""
        self._file = load_box_file(self._path)
        self._opened_at = self._clock()
        return self._file.box

    def read(self) -> Snapshot:
        assert self._file is not None, "read before open"
        now = self._clock()
        # A clock that was set back must not ask for a moment before the recording.
        played = max(now - self._opened_at, 0.0)
        readings = frame_at(self._file.frames, played).readings if self._file.frames else self._file.steady
        return Snapshot(self._file.box, now, readings)

    def close(self) -> None:
        self._file = None
