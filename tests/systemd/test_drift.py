"""A unit that was changed behind gpudeck's back, under a real systemd."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.services.engine.drift import DriftKind, drift_diff
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from tests.rigs.small_engines import inside_systemd

pytestmark = inside_systemd

UNITS = Path("/etc/systemd/system")
UNIT = UNITS / "vllm-drifts.service"


def systemctl(*words: str) -> None:
    subprocess.run(["systemctl", *words], check=True, capture_output=True)


@pytest.fixture
def spec(tmp_path: Path) -> EngineSpec:
    """Its program is called vllm: what is edited by hand is read as a vLLM's command."""
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\nsleep 1000 & wait\n")
    program.chmod(0o755)
    return EngineSpec(
        "drifts", "/models/none", Placement(((0, 1),)), EngineOptions(max_model_len=4096), program=(str(program),)
    )


@pytest.fixture
def drifting(runner: SystemdRunner, spec: EngineSpec) -> Iterator[SystemdRunner]:
    runner.install(spec)
    yield runner
    drop_in = Path(f"{UNIT}.d/mine.conf")
    if drop_in.exists():
        drop_in.unlink()
        drop_in.parent.rmdir()


def kinds(runner: SystemdRunner) -> list[DriftKind]:
    return [drift.kind for drift in runner.drift("drifts")]


def test_what_was_just_written_and_started_has_not_drifted(drifting: SystemdRunner) -> None:
    assert kinds(drifting) == []
    drifting.start("drifts")
    assert kinds(drifting) == []


def test_an_edit_on_disk_is_shown_until_it_is_loaded_and_run(drifting: SystemdRunner, spec: EngineSpec) -> None:
    text = UNIT.read_text()
    drifting.start("drifts")  # what does not run is not held in memory: systemd would read it anew by itself
    UNIT.write_text(text.replace("--max-model-len 4096", "--max-model-len 8192"))
    on_disk, by_hand = drifting.drift("drifts")
    assert (on_disk.kind, by_hand.kind) == (DriftKind.ON_DISK, DriftKind.BY_HAND)
    assert {"-  --max-model-len 4096", "+  --max-model-len 8192"} <= set(drift_diff(on_disk).splitlines())
    assert any(line.startswith("+ExecStart=") and "8192" in line for line in drift_diff(by_hand).splitlines())
    drifting.reload("drifts")
    by_hand, running = drifting.drift("drifts")
    assert (by_hand.kind, running.kind) == (DriftKind.BY_HAND, DriftKind.RUNNING)
    assert {"-  --max-model-len 4096", "+  --max-model-len 8192"} <= set(drift_diff(running).splitlines())
    drifting.restart("drifts")
    assert kinds(drifting) == [DriftKind.BY_HAND]
    # What is edited by hand is what it runs; what gpudeck would write is asked for, and only then written.
    state = drifting.state("drifts")
    assert state is not None
    assert state.managed
    assert state.spec == replace(spec, options=replace(spec.options, max_model_len=8192))
    assert drifting.preview(spec).existing == UNIT.read_text()
    drifting.install(spec)
    assert UNIT.read_text() == text
    assert kinds(drifting) == [DriftKind.RUNNING]


def test_a_drop_in_is_no_edit_and_counts_as_what_it_runs(drifting: SystemdRunner) -> None:
    drifting.start("drifts")
    folder = Path(f"{UNIT}.d")
    folder.mkdir()
    (folder / "mine.conf").write_text("[Service]\nEnvironment=CUDA_VISIBLE_DEVICES=3,2\n")
    assert kinds(drifting) == [DriftKind.ON_DISK]
    drifting.reload("drifts")
    assert kinds(drifting) == [DriftKind.RUNNING]
    state = drifting.state("drifts")
    assert state is not None
    assert state.spec is not None
    assert state.spec.placement.gpus == (3, 2)
    drifting.restart("drifts")
    assert kinds(drifting) == []


def test_cards_that_the_process_was_not_started_on(drifting: SystemdRunner) -> None:
    drifting.start("drifts")
    UNIT.write_text(UNIT.read_text().replace("CUDA_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES=1,0"))
    systemctl("daemon-reload")
    (running,) = [drift for drift in drifting.drift("drifts") if drift.kind is DriftKind.RUNNING]
    assert {"-CUDA_VISIBLE_DEVICES=0,1", "+CUDA_VISIBLE_DEVICES=1,0"} <= set(drift_diff(running).splitlines())


def test_lines_that_are_no_part_of_the_command_are_told_without_a_diff(drifting: SystemdRunner) -> None:
    drifting.start("drifts")
    UNIT.write_text(UNIT.read_text().replace("TimeoutStopSec=60s", "TimeoutStopSec=61s"))
    on_disk = drifting.drift("drifts")[0]
    assert on_disk.kind is DriftKind.ON_DISK
    assert drift_diff(on_disk) == ""


def test_a_unit_whose_file_is_gone(drifting: SystemdRunner) -> None:
    text = UNIT.read_text()
    drifting.start("drifts")
    UNIT.unlink()
    try:
        assert DriftKind.ON_DISK in kinds(drifting)
    finally:
        UNIT.write_text(text)
        systemctl("daemon-reload")
