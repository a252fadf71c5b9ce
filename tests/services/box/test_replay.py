from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.services.box.boxfile import BoxFile, BoxFileError, load_box_file, save_box_file
from gpudeck.services.box.frames import Frame, frame_at
from gpudeck.services.box.recording import Recording
from gpudeck.services.box.replay import ReplaySource
from gpudeck.services.box.source import open_source
from gpudeck.services.box.types import Box, BoxEvent, Reading, Severity, Snapshot
from tests.services.box.boxes import busy, card, pair

READINGS = (busy(0), busy(1))


def frames(*times: float) -> tuple[Frame, ...]:
    return tuple(Frame(at, (Reading(0, temperature_c=place), Reading(1))) for place, at in enumerate(times))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, 0), (0.9, 0), (1.0, 1), (2.9, 1), (3.0, 2), (4.9, 2), (5.0, 0), (6.0, 1), (1e9 * 5 + 3, 2)],
)
def test_frames_show_in_their_time_and_begin_anew(seconds: float, shown: int) -> None:
    assert frame_at(frames(0.0, 1.0, 3.0), seconds)[0] == shown


def test_one_frame_stands_for_ever() -> None:
    assert frame_at(frames(7.0), 12345.6)[0] == 0


def test_a_recording_is_replayed(tmp_path: Path) -> None:
    save_box_file(tmp_path / "box.json", BoxFile(pair(), READINGS, frames(0.0, 2.0)))
    now = 100.0
    source = ReplaySource(tmp_path / "box.json", clock=lambda: now)
    assert source.open() == pair()
    assert source.read() == Snapshot(pair(), 100.0, frames(0.0)[0].readings)
    now = 102.5
    assert source.read().readings[0].temperature_c == 1
    now = 90.0  # the clock was set back
    assert source.read().readings[0].temperature_c == 0


def test_a_hand_written_box_stands_still(tmp_path: Path) -> None:
    save_box_file(tmp_path / "box.json", BoxFile(pair(), (Reading(0, memory_used_bytes=0), Reading(1))))
    source = open_source(box_file=str(tmp_path / "box.json"))
    source.open()
    assert source.read().readings == source.read().readings
    assert source.read().readings[0].memory_used_bytes == 0


def test_a_file_that_is_none_is_refused_at_opening(tmp_path: Path) -> None:
    source = open_source(box_file=str(tmp_path / "none.json"))
    with pytest.raises(BoxFileError, match="does not exist"):
        source.open()


def test_what_was_recorded_is_what_is_replayed(tmp_path: Path) -> None:
    recording = Recording(Snapshot(pair(), 50.0, READINGS))
    recording.add(Snapshot(pair(), 51.0, (Reading(0, fault="lost"), READINGS[1])))
    recording.add(Snapshot(pair(), 51.0, READINGS))  # the clock stood still
    recording.add(Snapshot(pair(), 49.0, READINGS))  # or was set back
    save_box_file(tmp_path / "box.json", recording.file())
    assert [(frame.at, frame.readings[0].fault) for frame in load_box_file(tmp_path / "box.json").frames] == [
        (0.0, None),
        (1.0, "lost"),
    ]


def test_a_box_that_changed_and_what_happened_are_replayed_in_their_time(tmp_path: Path) -> None:
    one = Box((card(0),), name="one")
    lost = BoxEvent(50.5, Severity.ERROR, "GPU 1 has fallen off the bus.", 1, 79)
    back = BoxEvent(52.5, Severity.INFO, "GPU 1 answers again.", 1)
    old = replace(READINGS[1], at=45.0, fault="it hangs")
    recording = Recording(Snapshot(pair(), 50.0, READINGS))
    recording.add(Snapshot(pair(), 51.0, (READINGS[0], old), (lost,)))
    recording.add(Snapshot(one, 52.0, READINGS[:1], (lost,)))
    recording.add(Snapshot(pair(), 53.0, READINGS, (lost, back)))
    save_box_file(tmp_path / "box.json", recording.file())

    now = 1000.0
    source = ReplaySource(tmp_path / "box.json", clock=lambda: now)
    assert source.open() == pair()
    assert source.read().events == ()
    now = 1001.25
    snapshot = source.read()
    assert snapshot.readings == (READINGS[0], old)
    assert snapshot.age_of(snapshot.readings[1], now) == pytest.approx(6.25)  # it has grown older since its frame
    assert snapshot.events == (replace(lost, at=1000.5),)
    now = 1002.0
    assert source.read() == Snapshot(one, now, READINGS[:1], (replace(lost, at=1000.5),))
    now = 1003.0
    snapshot = source.read()
    assert (snapshot.box, snapshot.events) == (pair(), (replace(lost, at=1000.5), replace(back, at=1002.5)))
    now = 1004.0  # anew
    assert (source.read().box, source.read().events) == (pair(), ())
