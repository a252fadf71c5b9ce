"""A recording of a real H200 (driver 580.159.04, one card busy with matrix products and copies) replays as it was.

Its UUID is replaced; everything else is as NVML told it.
"""

from pathlib import Path

from gpudeck.services.box.boxfile import load_box_file
from gpudeck.services.box.report import box_document
from gpudeck.services.box.reporttext import box_text
from gpudeck.services.box.source import open_source
from gpudeck.services.box.types import GIB

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"


def test_the_card_is_told_as_nvidia_smi_told_it() -> None:
    source = open_source(box_file=str(RECORDINGS / "h200-busy.json"))
    box = source.open()
    snapshot = source.read()
    source.close()
    assert box.driver == "580.159.04"
    assert box.cuda == "13.0"
    card = box.gpus[0]
    assert str(card.compute_capability) == "9.0"
    # What CUDA gives is NVML's total less the driver's reserve: 150,109,880,320 bytes on this card, as torch reports.
    assert card.memory_bytes - (card.memory_reserved_bytes or 0) == 150_109_880_320
    reading = snapshot.readings[0]
    assert reading.utilization_percent == 100
    assert 40 * GIB < (reading.memory_used_bytes or 0) < 42 * GIB
    assert "python3" in {process.name for process in reading.processes}


def test_every_frame_of_the_recording_is_played() -> None:
    recorded = load_box_file(RECORDINGS / "h200-busy.json")
    assert len(recorded.frames) == 25
    assert {frame.readings[0].throttle_reasons for frame in recorded.frames} >= {("power cap",)}
    assert all((frame.readings[0].power_w or 0) > 500 for frame in recorded.frames)


def test_what_this_card_does_not_have_is_not_told_as_nothing() -> None:
    source = open_source(box_file=str(RECORDINGS / "h200-idle.json"))
    source.open()
    snapshot = source.read()
    source.close()
    reading = snapshot.readings[0]
    assert reading.fan_percent is None
    assert reading.utilization_percent == 0
    assert "n/a" in box_text(snapshot)
    gpus = box_document(snapshot)["gpus"]
    assert isinstance(gpus, list)
    assert gpus[0]["gpu_utilization_percent"] == 0
