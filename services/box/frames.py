"""Timed readings: what a recording replays."""

from bisect import bisect_right
from dataclasses import dataclass

from gpudeck.services.box.types import Box, BoxEvent, Reading


@dataclass(frozen=True, slots=True)
class Frame:
    """Every card at one moment of a recording.  Times are in seconds since it began, those within as well."""

    at: float
    readings: tuple[Reading, ...]
    box: Box | None = None  # the box from this moment on, where it changed
    events: tuple[BoxEvent, ...] = ()  # what happened since the frame before


def frame_at(frames: tuple[Frame, ...], seconds: float) -> tuple[int, float]:
    """Which frame is showing `seconds` after a replay began, and how far into the recording that is.

    At its end the recording begins anew.  The last frame stands as long as the one before it did, or a second where it
    is the only one.
    """
    first, last = frames[0], frames[-1]
    hold = last.at - frames[-2].at if len(frames) > 1 else 1.0
    length = last.at - first.at + (hold or 1.0)
    place = first.at + seconds % length
    return max(bisect_right(frames, place, key=lambda frame: frame.at) - 1, 0), place
