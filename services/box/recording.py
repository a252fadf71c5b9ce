"""Snapshots gathered into a box file."""

from gpudeck.services.box.boxfile import BoxFile
from gpudeck.services.box.boxshape import MAX_FRAMES
from gpudeck.services.box.frames import Frame
from gpudeck.services.box.types import Snapshot


class Recording:
    """Begins with its first snapshot; `add` takes those that follow, until it is full."""

    def __init__(self, first: Snapshot) -> None:
        self._first = first
        self._frames = [Frame(0.0, first.readings)]

    @property
    def full(self) -> bool:
        return len(self._frames) >= MAX_FRAMES

    def add(self, snapshot: Snapshot) -> None:
        """Take one more.  One whose clock did not move on, or of a box of other cards, is left out."""
        at = round(snapshot.at - self._first.at, 3)
        same = [gpu.index for gpu in snapshot.box.gpus] == [gpu.index for gpu in self._first.box.gpus]
        if same and at > self._frames[-1].at and not self.full:
            self._frames.append(Frame(at, snapshot.readings))

    def file(self) -> BoxFile:
        return BoxFile(self._first.box, self._first.readings, tuple(self._frames), recorded_at=self._first.at)
