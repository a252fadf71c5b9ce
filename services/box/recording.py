"""Snapshots gathered into a box file."""

from dataclasses import replace

from gpudeck.services.box.boxfile import BoxFile
from gpudeck.services.box.frames import Frame
from gpudeck.services.box.limits import MAX_FRAMES
from gpudeck.services.box.types import Snapshot


class Recording:
    """Begins with its first snapshot; `add` takes those that follow, until it is full."""

    def __init__(self, first: Snapshot) -> None:
        self._first = first
        self._last = first
        self._frames = [self._frame(first, 0.0, before=None)]

    @property
    def full(self) -> bool:
        return len(self._frames) >= MAX_FRAMES

    def add(self, snapshot: Snapshot) -> None:
        """Take one more.  One whose clock did not move on is left out."""
        at = round(snapshot.at - self._first.at, 3)
        if at > self._frames[-1].at and not self.full:
            self._frames.append(self._frame(snapshot, at, before=self._last))
            self._last = snapshot

    def file(self) -> BoxFile:
        return BoxFile(self._first.box, self._first.readings, tuple(self._frames), recorded_at=self._first.at)

    def _frame(self, snapshot: Snapshot, at: float, before: Snapshot | None) -> Frame:
        """Its times are since the recording began."""
        begun = self._first.at
        seen = before.events if before else ()
        return Frame(
            at,
            tuple(
                reading if reading.at is None else replace(reading, at=reading.at - begun)
                for reading in snapshot.readings
            ),
            box=snapshot.box if before and snapshot.box != before.box else None,
            events=tuple(replace(event, at=event.at - begun) for event in snapshot.events if event not in seen),
        )
