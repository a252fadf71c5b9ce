import json
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.box import boxfile
from gpudeck.services.box.boxfile import BoxFile, BoxFileError, load_box_file, parse_box_file, save_box_file
from gpudeck.services.box.frames import Frame
from gpudeck.services.box.types import (
    MIB,
    Accelerator,
    Box,
    BoxEvent,
    ComputeCapability,
    GpuProcess,
    LaneReading,
    Link,
    MigInstance,
    Modes,
    NvLink,
    PeerAccess,
    Reading,
    Rows,
    Severity,
)
from tests.services.box.boxes import busy, card, pair
from tests.services.box.write_schemas import DOCS

SMALL = {
    "gpus": [
        {"index": 0, "name": "A", "memory_mib": 24564, "compute_capability": "8.9"},
        {"index": 1, "name": "B", "memory_mib": 40960, "compute_capability": "8.0"},
    ],
    "links": [{"a": 0, "b": 1, "kind": "NV4"}],
}


def changed(path: str, value: Any) -> str:
    """SMALL with one place set: `gpus.1.name`; "…" as value takes it away."""
    document = json.loads(json.dumps(SMALL))
    *way, last = [int(word) if word.isdigit() else word for word in path.split(".")]
    place = document
    for word in way:
        place = place[word]
    if value == "…":
        del place[last]
    else:
        place[last] = value
    return json.dumps(document)


def test_a_hand_written_box_needs_four_keys_a_card() -> None:
    file = parse_box_file(json.dumps(SMALL), "small.json")
    assert file.box.gpus[0].memory_bytes == 24564 * MIB
    assert file.box.gpus[0].compute_capability == ComputeCapability(8, 9)
    assert file.box.link(1, 0) == "NV4"
    assert file.steady == (Reading(0), Reading(1))
    assert file.frames == ()


def test_a_pair_that_is_left_out_is_sys() -> None:
    assert parse_box_file(changed("links", []), "x").box.link(0, 1) == "SYS"
    assert parse_box_file(changed("links", "…"), "x").box.link(0, 1) == "SYS"


def test_cards_stand_in_the_order_of_their_indices() -> None:
    text = json.dumps({"gpus": SMALL["gpus"][::-1], "links": []})
    assert [gpu.name for gpu in parse_box_file(text, "x").box.gpus] == ["A", "B"]


def test_optional_keys_are_taken() -> None:
    extra = {
        "uuid": "GPU-1",
        "pcie": {"bus": "0000:3b:00.0", "gen": 4, "width": 16},
        "numa": 1,
        "cpu_affinity": "0-31",
        "power_limit_w": 425,
        "memory_bandwidth_gbs": 1008.5,
        "used_mib": 100,
        "processes": [{"pid": 7, "name": "VLLM::Worker_TP1", "memory_mib": 90, "tp_rank": 1}],
    }
    document = {**SMALL, "gpus": [SMALL["gpus"][0] | extra], "links": [], "host_memory_mib": 1024, "driver": "580"}
    file = parse_box_file(json.dumps(document), "x")
    gpu, reading = file.box.gpus[0], file.steady[0]
    assert gpu.pcie.bus == "00000000:3B:00.0"
    assert gpu.numa == "1"
    assert reading.memory_used_bytes == 100 * MIB
    assert reading.memory_free_bytes == (24564 - 100) * MIB
    assert reading.processes == (GpuProcess(7, "VLLM::Worker_TP1", 90 * MIB, tp_rank=1),)
    assert file.box.host_memory_bytes == 1024 * MIB


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not JSON"),
        ("{", "line 1, column 2"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "not JSON that can be read"),
        ("[]", "the document must be an object, not a list"),
        ("{}", "gpus is missing"),
        ('{"gpus": [], "links": []}', "gpus has 0 entries; it must have 1 to 64"),
        ('{"gpus": 1, "gpus": 2}', 'the key "gpus" stands twice'),
        (changed("gpu", 1), 'the document has the unknown key "gpu"; known are name, driver'),
        (changed("gpus.0.memory", 1), 'gpus[0] has the unknown key "memory"'),
        (changed("gpus.1.name", "…"), "gpus[1].name is missing"),
        (changed("gpus.1.name", " "), 'gpus[1].name must be the card\'s name, not " "'),
        (changed("gpus.1.index", 0), "gpus[1].index repeats 0 of gpus[0]"),
        (changed("gpus.1.index", True), "gpus[1].index must be a whole number from 0 to 1023, not true"),
        (changed("gpus.1.index", -1), "gpus[1].index must be a whole number"),
        (changed("gpus.0.memory_mib", 0), "gpus[0].memory_mib must be a number from 1 to"),
        (changed("gpus.0.memory_mib", 1e300), "gpus[0].memory_mib must be a number"),
        (changed("gpus.0.memory_mib", 10**400), "gpus[0].memory_mib must be a number"),
        (changed("gpus.0.memory_mib", "24 GB"), 'not "24 GB"'),
        (changed("gpus.0.memory_mib", float("nan")), "NaN is no number of JSON"),
        (
            changed("gpus.0.compute_capability", 8.9),
            'gpus[0].compute_capability must be a string such as "8.9", not 8.9',
        ),
        (changed("gpus.0.pcie", {"bus": "3B"}), "gpus[0].pcie.bus must be a PCI bus id"),
        (changed("gpus.0.used_mib", 99999), "gpus[0].used_mib is more than its memory_mib, 24564"),
        (changed("gpus.0.processes", [{"pid": 1}]), "gpus[0].processes[0].name is missing"),
        (
            changed("gpus.0.processes", [{"pid": 1, "name": "", "memory_mib": 1, "memory_bytes": 1}]),
            "has both memory_mib and memory_bytes",
        ),
        (changed("links.0.b", 7), "links[0].b names GPU 7, which is not among gpus"),
        (changed("links.0.b", 0), "links[0] joins GPU 0 to itself"),
        (changed("links.0.kind", "NV99"), "links[0].kind must be NV1 to NV36, PIX, PXB, PHB, NODE or SYS"),
        (changed("links.0.kind", "nv4"), "links[0].kind must be"),
        (
            changed("links", [{"a": 0, "b": 1, "kind": "SYS"}, {"a": 1, "b": 0, "kind": "PIX"}]),
            "links[1] tells the pair 1 and 0 again, after links[0]",
        ),
        (changed("gpus.0.memory_reserved_mib", 24565), "gpus[0].memory_reserved_mib and what is in use are more than"),
        (changed("gpus.0.nvlinks", [{"lane": 0}]), "gpus[0].nvlinks[0].up is missing"),
        (changed("gpus.0.nvlinks", [{"lane": 0, "up": 1}]), "gpus[0].nvlinks[0].up must be true or false, not 1"),
        (changed("gpus.0.nvlinks", [{"lane": 36, "up": True}]), "gpus[0].nvlinks[0].lane must be a whole number"),
        (
            changed("gpus.0.nvlinks", [{"lane": 0, "up": True, "remote": "nic"}]),
            "gpus[0].nvlinks[0].remote must be one of gpu, switch, cpu, other",
        ),
        (changed("peer_access", [{"a": 0, "b": 5}]), "peer_access[0].b names GPU 5, which is not among gpus"),
        (changed("peer_access", [{"a": 0, "b": 1, "read": "yes"}]), "peer_access[0].read must be one of OK, CNS"),
        (changed("topology_known", "no"), 'topology_known must be true or false, not "no"'),
        (changed("frames", [{"at": 0, "readings": [{"gpu": 5}]}]), "frames[0].readings[0].gpu names GPU 5"),
        (
            changed("frames", [{"at": 0, "readings": [{"gpu": 0, "ecc": {"on": True}}]}]),
            'frames[0].readings[0].ecc has the unknown key "on"',
        ),
        (
            changed("frames", [{"at": 0, "box": {"gpus": SMALL["gpus"][:1]}, "readings": [{"gpu": 1}]}]),
            "frames[0].readings[0].gpu names GPU 1, which is not among gpus",
        ),
        (
            changed(
                "frames", [{"at": 0, "box": {**SMALL, "links": [{"a": 0, "b": 7, "kind": "SYS"}]}, "readings": []}]
            ),
            "frames[0].box.links[0].b names GPU 7",
        ),
        (
            changed("frames", [{"at": 0, "readings": [], "events": [{"at": 0, "severity": "bad", "text": ""}]}]),
            "frames[0].events[0].severity must be one of error, warning, info",
        ),
        (changed("frames", [{"at": 0, "readings": [{"gpu": 1}, {"gpu": 1}]}]), "reads GPU 1 a second time"),
        (changed("frames", [{"at": 1, "readings": []}, {"at": 1, "readings": []}]), "frames[1].at must be later"),
    ],
)
def test_bad_input_gets_one_sentence_that_names_the_place(text: str, told: str) -> None:
    with pytest.raises(BoxFileError) as caught:
        parse_box_file(text, "dir/box.json")
    sentence = str(caught.value)
    assert sentence.startswith("dir/box.json is ")
    assert told in sentence
    assert "\n" not in sentence
    assert len(sentence) < 400


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["gpus", "links", "index", "name", "frames", "pcie"]), inner)
        ),
        max_leaves=12,
    )
)
def test_no_document_raises_anything_else(document: object) -> None:
    with pytest.raises(BoxFileError):
        parse_box_file(json.dumps(document), "box.json")


def test_files_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latin, large = tmp_path / "latin.json", tmp_path / "large.json"
    latin.write_bytes(b'{"name": "b\xf6x"}')
    large.write_text(" " * 2000)
    monkeypatch.setattr(boxfile, "MAX_FILE_BYTES", 1000)
    for path, told in [
        (tmp_path / "none.json", "does not exist"),
        (tmp_path, "is not a regular file"),
        (latin, "byte 11 is no UTF-8"),
        (large, "is larger than"),
    ]:
        with pytest.raises(BoxFileError) as caught:
            load_box_file(path)
        assert str(caught.value).startswith(str(path))
        assert told in str(caught.value)


WORKER = GpuProcess(
    4711,
    "VLLM::Worker_TP0",
    29 * MIB + 1,
    "vllm",
    "gemma",
    tp_rank=0,
    pp_rank=0,
    started_at=1.6e9,
    mig=2,
    command="vllm serve gemma",
    container="container gemma",
)


def everything(gpu: int) -> Reading:
    """A reading that says something in every field."""
    return replace(
        busy(gpu, WORKER),
        fan_percent=40,
        throttle_reasons=("power cap", "0x800"),
        processes_hidden=True,
        mig_enabled=True,
        mig=(MigInstance(2, 0, "MIG 3g.20gb", "MIG-0", 20 * MIB, MIB, 42), MigInstance(5)),
        nvlink_tx_bytes_s=12.5,
        nvlink_rx_bytes_s=0.0,
        lanes=(LaneReading(0, 12.5, 0.0, 1, 2, 3), LaneReading(3)),
        rows=Rows(1, 2, True, False, 3, 4, True),
        modes=Modes("exclusive process", False, True, "completed"),
        at=-3.0,  # three seconds older than its frame
    )


def whole_box() -> Box:
    """A box that says something in every field."""
    nvlinks = (NvLink(0, True, 3, 25.0, "gpu", 1, "00000000:11:00.0"), NvLink(1, False))
    return Box(
        (
            card(0, nvlinks=nvlinks),
            card(1, memory_bytes=40 * MIB + 1, memory_reserved_bytes=MIB // 2, unified_memory=True),
        ),
        (Link(0, 1, "NV12"),),
        "box",
        "580",
        "13.0",
        7 * MIB,
        ("GPU 2 may not be opened.",),
        (PeerAccess(0, 1, "OK", "CNS", "OK", "NS"),),
        (Accelerator("0000:c1:00.0", "AMD", "Instinct MI300X"),),
        topology_known=False,
    )


def test_a_recording_comes_back_as_it_was(tmp_path: Path) -> None:
    first, lost = everything(0), Reading(1, fault="GPU 1 has fallen off the bus.")
    events = (BoxEvent(-1.0, Severity.ERROR, "GPU 1: Xid 79.", 1, 79), BoxEvent(0.5, Severity.INFO, "well"))
    smaller = Box((card(0),))
    file = BoxFile(
        whole_box(),
        (first, Reading(1, memory_used_bytes=1, memory_reserved_bytes=MIB // 2, memory_free_bytes=40 * MIB - MIB // 2)),
        (Frame(0.0, (first, lost), events=events), Frame(1.5, (busy(0),), box=smaller), Frame(2.0, (busy(0),))),
        recorded_at=1.7e9,
    )
    save_box_file(tmp_path / "box.json", file)
    read = load_box_file(tmp_path / "box.json")
    assert read.box == file.box
    assert read.frames == file.frames
    assert read.frames[0].readings[0].at == -3.0
    assert read.frames[1].readings[0].at is None
    assert read.recorded_at == file.recorded_at
    assert read.steady[0].memory_used_bytes == first.memory_used_bytes
    assert read.steady[0].processes == first.processes
    assert read.steady[1] == file.steady[1]
    jsonschema.validate(
        json.loads((tmp_path / "box.json").read_text()), json.loads((DOCS / "box.schema.json").read_text())
    )


def test_nothing_that_a_box_or_a_reading_can_say_is_left_out_above() -> None:
    def silent(value: object) -> set[str]:
        return {field.name for field in fields(value) if getattr(value, field.name) == field.default}  # type: ignore[arg-type]

    assert silent(everything(0)) == {"fault"}
    assert silent(WORKER) == {"dp_rank"}
    assert silent(whole_box()) == set()
    assert silent(whole_box().gpus[0]) == {"unified_memory"}


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "box.json"
    target.write_text("before")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BoxFileError, match="folder can not be written"):
        save_box_file(tmp_path / "folder", BoxFile(pair(), ()))
    with pytest.raises(BoxFileError, match="can not be written: No such file"):
        save_box_file(tmp_path / "none" / "box.json", BoxFile(pair(), ()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["box.json", "folder"]
    save_box_file(target, BoxFile(pair(), ()))
    assert load_box_file(target).box == pair()
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask
