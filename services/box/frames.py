"""Timed readings: what a recording replays."""

from bisect import bisect_right
from dataclasses import dataclass

from gpudeck.services.box.types import Reading


@dataclass(frozen=True, slots=True)
class Frame:
    """Every card at one moment of a recording; `at` is in seconds since it began."""

    at: float
    readings: tuple[Reading, ...]


def frame_at(frames: tuple[Frame, ...], seconds: float) -> Frame:
    """The frame that is showing `seconds` after a replay began.  At its end the recording begins anew.

    The last frame stands as long as the one before it did, or a second where it is the only one.
    """
    first, last = frames[0], frames[-1]
    hold = last.at - frames[-2].at if len(frames) > 1 else 1.0
    length = last.at - first.at + (hold or 1.0)
    place = first.at + seconds % length
    return frames[max(bisect_right(frames, place, key=lambda frame: frame.at) - 1, 0)]
