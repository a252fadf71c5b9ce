"""A recorded or hand-written box, replayed: its frames in their own time, or steadily what it says."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gpudeck.services.box.boxfile import BoxFile, load_box_file
from gpudeck.services.box.frames import Frame, frame_at
from gpudeck.services.box.types import Box, Demand, Snapshot


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

    def read(self, demand: Demand = Demand.ALL) -> Snapshot:  # noqa: ARG002 (all that was recorded is there)
        """What was recorded, whatever the demand: it costs nothing."""
        assert self._file is not None, "read before open"
        now = self._clock()
        if not self._file.frames:
            return Snapshot(self._file.box, now, self._file.steady)
        # A clock that was set back must not ask for a moment before the recording.
        index, place = frame_at(self._file.frames, max(now - self._opened_at, 0.0))
        return _shown(self._file.box, self._file.frames[: index + 1], now, begun=now - place)

    def close(self) -> None:
        self._file = None


def _shown(box: Box, played: tuple[Frame, ...], now: float, begun: float) -> Snapshot:
    """The last of the frames that were played, with times as if the recording had begun at `begun`."""
    changed = next((frame.box for frame in reversed(played) if frame.box is not None), box)
    return Snapshot(
        changed,
        now,
        tuple(
            reading if reading.at is None else replace(reading, at=reading.at + begun)
            for reading in played[-1].readings
        ),
        tuple(replace(event, at=event.at + begun) for frame in played for event in frame.events),
    )
