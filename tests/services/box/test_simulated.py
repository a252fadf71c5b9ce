import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpudeck.services.box.loads import read_loads
from gpudeck.services.box.simulated import SimulatedSource, simulated_box, simulated_boxes
from gpudeck.services.box.source import demo_boxes, open_source
from gpudeck.services.box.types import GIB, GpuProcess, Snapshot
from gpudeck.services.errors import OperatorError


def load_file(folder: Path, name: str = "gemma", **changes: object) -> Path:
    document = {
        "pid": os.getpid(),
        "engine": name,
        "utilization": 80,
        "gpus": [
            {"gpu": 1, "memory_bytes": 30 * GIB, "process": "VLLM::Worker_TP0", "tp_rank": 0, "pp_rank": 0},
            {"gpu": 2, "memory_bytes": 31 * GIB, "process": "VLLM::Worker_TP1", "tp_rank": 1, "pp_rank": 0},
        ],
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document | changes))
    return path


def read(folder: Path | None, now: float = 1000.0) -> Snapshot:
    source = SimulatedSource("mixed", folder, clock=lambda: now)
    source.open()
    return source.read()


def test_the_first_demo_box_is_the_mixed_one() -> None:
    box = simulated_box(demo_boxes()[0]).box
    assert [gpu.name for gpu in box.gpus] == ["NVIDIA GeForce RTX 4090 D", *["NVIDIA A100-SXM4-40GB"] * 2]
    assert (box.link(1, 2), box.link(0, 1), box.link(0, 2)) == ("NV12", "SYS", "SYS")


@pytest.mark.parametrize("name", simulated_boxes())
def test_every_demo_box_is_whole_and_reads(name: str) -> None:
    source = open_source(demo=name)
    box = source.open()
    assert box.driver
    assert len(box.links) == len(box.gpus) * (len(box.gpus) - 1) // 2
    for gpu, reading in zip(box.gpus, source.read().readings, strict=True):
        assert gpu.uuid
        assert reading.gpu == gpu.index
        assert reading.power_w is not None
        assert (reading.utilization_percent, reading.memory_used_bytes, reading.processes) == (0, 0, ())
        parts = (reading.memory_used_bytes, reading.memory_reserved_bytes, reading.memory_free_bytes)
        assert sum(part or 0 for part in parts) == gpu.memory_bytes


def test_an_engine_shows_on_its_cards(tmp_path: Path) -> None:
    load_file(tmp_path)
    idle, first, second = read(tmp_path).readings
    assert (idle.utilization_percent, idle.processes) == (0, ())
    assert first.processes == (GpuProcess(os.getpid(), "VLLM::Worker_TP0", 30 * GIB, None, "gemma", 0, 0),)
    assert second.memory_used_bytes == 31 * GIB
    assert 60 < (first.utilization_percent or 0) <= 100
    assert (first.power_w or 0) > (idle.power_w or 0)


def test_readings_move_and_a_busy_card_warms(tmp_path: Path) -> None:
    load_file(tmp_path)
    now = 1000.0
    source = SimulatedSource("mixed", tmp_path, clock=lambda: now)
    source.open()
    powers, temperatures = set(), []
    for _ in range(20):
        now += 3.0
        reading = source.read().readings[1]
        powers.add(reading.power_w)
        temperatures.append(reading.temperature_c or 0)
    assert len(powers) > 10
    assert temperatures[-1] > temperatures[0] + 15


def test_more_than_a_card_holds_is_not_shown(tmp_path: Path) -> None:
    load_file(tmp_path, "one")
    load_file(tmp_path, "two")
    reading = read(tmp_path).readings[1]
    assert (reading.memory_used_bytes or 0) + (reading.memory_reserved_bytes or 0) == 40 * GIB
    assert reading.memory_free_bytes == 0
    assert (reading.utilization_percent or 0) <= 100
    assert [process.engine for process in reading.processes] == ["one", "two"]


def test_files_that_are_bad_or_of_the_dead_count_for_nothing(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    try:
        # Ended and not waited for: a zombie still has a pid.
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        load_file(tmp_path, "zombie", pid=ended.pid)
        assert read_loads(tmp_path) == ()
    finally:
        ended.wait()
    load_file(tmp_path, "stale", pid=ended.pid)
    load_file(tmp_path, "typo", utilisation=3)
    load_file(tmp_path, "wrong", gpus=[{"gpu": "1"}])
    (tmp_path / "half.json").write_text('{"pid": 1')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "note.txt").write_text("hello")
    assert read_loads(tmp_path) == ()
    assert read_loads(tmp_path / "none") == ()
    load_file(tmp_path)
    assert len(read_loads(tmp_path)) == 2


def test_an_unknown_demo_box_and_two_boxes_at_once_are_refused() -> None:
    with pytest.raises(OperatorError, match=r"no demo box called big: take one of mixed, bridges"):
        open_source(demo="big")
    with pytest.raises(OperatorError, match="two boxes"):
        open_source(demo="mixed", box_file="x.json")
