"""Cards and drivers that fail and come back, through the real pynvml on the fake library."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gpudeck.services.box.nvml import NvmlSource, library
from gpudeck.services.box.nvml.source import CENSUS_S, REOPEN_S
from gpudeck.services.box.types import Accelerator, Box, Link, Reading, Severity
from gpudeck.services.errors import OperatorError
from tests.rigs.fakenvml.fixtures import FakeNvml, PlayedBox
from tests.services.box.boxes import busy, card, pair
from tests.services.box.nvml.conftest import Clock
from tests.services.box.pci_bus import Bus

READINGS = (busy(0), busy(1))


def test_a_lost_card_tells_its_fault_while_the_others_go_on(
    fake_nvml: FakeNvml, source: NvmlSource, clock: Clock
) -> None:
    playing = fake_nvml(pair(), READINGS)
    box = source.open()
    playing.change({"gpu.1.fault": "!GPU_IS_LOST"})
    for _ in range(3):
        snapshot = source.read()
        assert snapshot.box == box
        assert snapshot.readings[0] == READINGS[0]
        fault = snapshot.readings[1].fault or ""
        assert fault.startswith("GPU 1 has fallen off the bus")
        assert snapshot.readings[1] == Reading(1, fault=fault)
        clock.now += REOPEN_S
    playing.change({"gpu.1.fault": None})
    assert source.read().readings == READINGS
    assert source.read().box == box


def test_a_card_that_comes_back_between_two_openings_of_the_library_is_found(
    fake_nvml: FakeNvml, source: NvmlSource
) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    playing.change({"gpu.0.fault": "!GPU_IS_LOST"})
    assert source.read().readings[0].fault
    playing.change({"gpu.0.fault": None})
    assert source.read().readings == READINGS


@pytest.mark.parametrize(
    ("error", "told"),
    [("RESET_REQUIRED", "wants a reset"), ("TIMEOUT", "did not answer"), ("UNKNOWN", "nothing but errors: Unknown")],
)
def test_other_faults_of_a_card(fake_nvml: FakeNvml, source: NvmlSource, error: str, told: str) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    playing.change({"gpu.0.fault": f"!{error}"})
    first, second = source.read().readings
    assert told in (first.fault or "")
    assert second == READINGS[1]


def test_the_loss_of_all_cards_is_the_loss_of_the_box(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    playing.change({"gpu.0.fault": "!GPU_IS_LOST", "gpu.1.fault": "!GPU_IS_LOST"})
    with pytest.raises(OperatorError, match="GPU 0 has fallen off the bus"):
        source.read()
    source.close()
    with pytest.raises(OperatorError, match="GPU 0 has fallen off the bus"):
        source.open()
    playing.change({"gpu.0.fault": None, "gpu.1.fault": None})
    source.open()
    assert source.read().readings == READINGS


def test_a_card_that_can_not_be_opened_is_told_and_joins_when_it_can(
    fake_nvml: FakeNvml, source: NvmlSource, clock: Clock
) -> None:
    playing = fake_nvml(pair(), READINGS, **{"gpu.1.handle": "!NO_PERMISSION"})
    box = source.open()
    assert [gpu.index for gpu in box.gpus] == [0]
    assert box.faults == ("GPU 1 may not be opened by this user: ask for access to /dev/nvidia1.",)
    playing.change({"gpu.1.handle": None})
    assert source.read().readings == READINGS[:1]
    clock.now += REOPEN_S
    snapshot = source.read()
    assert snapshot.readings == READINGS
    assert snapshot.box.links == pair().links
    assert snapshot.box.faults == ()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("DRIVER_NOT_LOADED", "modprobe nvidia"),
        ("LIB_RM_VERSION_MISMATCH", "of two versions, as after an update: reboot"),
        ("NO_PERMISSION", "may not open the NVIDIA devices"),
        ("UNKNOWN", "can not be read: Unknown Error"),
    ],
)
def test_a_library_that_does_not_open(fake_nvml: FakeNvml, source: NvmlSource, error: str, told: str) -> None:
    playing = fake_nvml(pair(), READINGS, init=f"!{error}")
    with pytest.raises(OperatorError, match=told):
        source.open()
    playing.change({"init": None})
    source.open()
    assert source.read().readings == READINGS


def test_a_driver_without_cards(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    fake_nvml(pair(), (), count="0")
    with pytest.raises(OperatorError, match="finds no GPU"):
        source.open()


def test_cards_of_another_maker_are_named_whether_nvml_answers_or_not(
    fake_nvml: FakeNvml, source: NvmlSource, pci_bus: Bus
) -> None:
    pci_bus.plug("0000:c1:00.0", "120000", "1002", "fffe")  # a number that no pci.ids knows
    playing = fake_nvml(pair(), READINGS, init="!DRIVER_NOT_LOADED")
    with pytest.raises(OperatorError, match=r"modprobe nvidia.* This machine also has AMD 1002:fffe: out of scope"):
        source.open()
    playing.change({"init": None})
    assert source.open().accelerators == (Accelerator("0000:c1:00.0", "AMD", "1002:fffe"),)


def test_a_machine_without_the_library() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    code = "from gpudeck.services.box.nvml import NvmlSource\nNvmlSource().open()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith(
        "gpudeck.services.errors.OperatorError: No NVIDIA driver is installed here"
    )


def test_what_befell_a_card_is_an_event_once(fake_nvml: FakeNvml, source: NvmlSource) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    playing.change({"gpu.1.fault": "!GPU_IS_LOST"})
    source.read()
    fault = source.read().readings[1].fault
    playing.change({"gpu.1.fault": None})
    events = source.read().events
    assert [(event.gpu, event.severity, event.text) for event in events] == [
        (1, Severity.ERROR, fault),
        (1, Severity.INFO, "GPU 1 answers again."),
    ]


def test_a_card_that_hangs_at_opening_keeps_none_waiting_and_joins_when_it_answers(
    fake_nvml: FakeNvml, clock: Clock, cards_folder: Path
) -> None:
    source = NvmlSource(clock, cards_folder=cards_folder, patience=0.3)
    playing = fake_nvml(pair(), READINGS, **{"gpu.1.name.delay_us": "600000000"})
    box = source.open()
    assert [gpu.index for gpu in box.gpus] == [0]
    assert "GPU 1 does not answer" in box.faults[0]
    clock.now += REOPEN_S
    assert source.read().readings == READINGS[:1]  # the library is not closed under the call that hangs
    playing.change({"gpu.1.name.delay_us": None})
    joined = False
    for _ in range(1000):
        clock.now += REOPEN_S
        joined = source.read().readings == READINGS
        if joined:
            break
    assert joined
    source.close()


def test_a_card_that_hangs_at_every_opening_costs_one_thread(
    fake_nvml: FakeNvml, clock: Clock, cards_folder: Path
) -> None:
    source = NvmlSource(clock, cards_folder=cards_folder, patience=0.05)
    playing = fake_nvml(Box((card(0),)), (), **{"gpu.0.name.delay_us": "600000000"})
    for _ in range(5):
        with pytest.raises(OperatorError, match="GPU 0 does not answer"):
            source.open()
    assert sum(thread.name == "gpudeck-gpu0" for thread in threading.enumerate()) == 1
    playing.change({"gpu.0.name.delay_us": None})
    deadline = time.monotonic() + 20
    while any(thread.name == "gpudeck-gpu0" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert source.open().gpus[0].name == card(0).name
    source.close()


def test_a_library_that_hangs_at_every_opening_costs_one_thread(
    fake_nvml: FakeNvml, source: NvmlSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "OPEN_PATIENCE_S", 0.05)
    playing = fake_nvml(pair(), READINGS, **{"init.delay_us": "600000000"})
    for _ in range(5):
        with pytest.raises(OperatorError, match="The NVIDIA driver does not answer"):
            source.open()
    assert sum(thread.name == "gpudeck-nvml" for thread in threading.enumerate()) == 1
    playing.change({"init.delay_us": None})
    monkeypatch.undo()
    deadline = time.monotonic() + 20
    while True:
        try:
            source.open()
            break
        except OperatorError:
            assert time.monotonic() < deadline
    assert source.read().readings == READINGS


THREE = Box((card(0), card(1), card(2)), (Link(0, 1, "NV12"), Link(0, 2, "SYS"), Link(1, 2, "SYS")))


def test_a_card_that_is_added_is_found_with_its_links(fake_nvml: FakeNvml, source: NvmlSource, clock: Clock) -> None:
    playing = fake_nvml(THREE, [busy(index) for index in range(3)], count="2")
    assert len(source.open().gpus) == 2
    playing.change({"count": "3"})
    assert len(source.read().readings) == 2  # not asked at every beat
    clock.now += CENSUS_S
    snapshot = source.read()
    assert snapshot.box.links == THREE.links
    assert snapshot.readings[2] == busy(2)
    assert [event.text for event in snapshot.events] == ["GPU 2 (NVIDIA A100-SXM4-40GB) was added."]


def test_a_card_that_only_the_driver_s_folder_tells_of_is_looked_for(
    fake_nvml: FakeNvml, source: NvmlSource, clock: Clock, cards_folder: Path
) -> None:
    """A real library counts its cards once, when it is opened."""
    cards_folder.mkdir()
    playing = fake_nvml(pair(), READINGS)
    before = source.open()
    (cards_folder / "0000:12:00.0").mkdir()
    playing.change({"gpu.0.uuid": "GPU-other"})
    clock.now += CENSUS_S
    after = source.read().box
    assert (before.gpus[0].uuid, after.gpus[0].uuid) == (card(0).uuid, "GPU-other")


def remove_the_first(playing: PlayedBox) -> None:
    """GPUs 1 and 2 of THREE become GPUs 0 and 1."""
    last_two = {
        key.replace(f"gpu.{index}.", f"gpu.{index - 1}.", 1): value
        for index in (1, 2)
        for key, value in playing.keys.items()
        if key.startswith(f"gpu.{index}.") and not any(word in key for word in (".ancestor.", ".p2p.", ".lane"))
    }
    for key in [key for key in playing.keys if key.startswith("gpu.")]:
        del playing.keys[key]
    playing.change({**last_two, "count": "2", "gpu.0.ancestor.1": "50"})


def test_a_card_that_is_removed_is_told_and_the_others_move_up(
    fake_nvml: FakeNvml, source: NvmlSource, clock: Clock
) -> None:
    playing = fake_nvml(THREE, [busy(index) for index in range(3)])
    source.open()
    remove_the_first(playing)
    clock.now += CENSUS_S
    snapshot = source.read()
    assert [gpu.uuid for gpu in snapshot.box.gpus] == [card(1).uuid, card(2).uuid]
    gone = "What was GPU 0 (NVIDIA A100-SXM4-40GB at 00000000:10:00.0) is no longer there: look for it with `lspci`."
    assert snapshot.box.faults == (gone,)
    assert [(event.severity, event.text) for event in snapshot.events] == [(Severity.WARNING, gone)]
    assert [reading.fault for reading in snapshot.readings] == [None, None]


def test_a_card_that_was_ill_and_moves_up_well_is_not_taken_for_another(
    fake_nvml: FakeNvml, source: NvmlSource, clock: Clock
) -> None:
    playing = fake_nvml(THREE, [busy(index) for index in range(3)])
    source.open()
    playing.change({"gpu.2.fault": "!GPU_IS_LOST"})
    source.read()
    playing.change({"gpu.2.fault": None})
    remove_the_first(playing)
    clock.now += CENSUS_S
    events = source.read().events
    assert [event.severity for event in events] == [Severity.ERROR, Severity.WARNING]
    clock.now += REOPEN_S
    assert source.read().events == events  # nobody is ill: the library is not opened anew


def test_a_library_that_is_closed_under_the_cards_is_opened_anew(
    fake_nvml: FakeNvml, source: NvmlSource, clock: Clock
) -> None:
    playing = fake_nvml(pair(), READINGS)
    source.open()
    playing.change({"gpu.0.fault": "!UNINITIALIZED"})
    assert "is opened anew" in (source.read().readings[0].fault or "")
    playing.change({"gpu.0.fault": None})
    clock.now += REOPEN_S
    assert source.read().readings == READINGS
