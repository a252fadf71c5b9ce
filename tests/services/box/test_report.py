from dataclasses import replace

from gpudeck.services.box.report import box_document, global_rank, nvlink_peers, topo_document
from gpudeck.services.box.reporttext import box_text, topo_text
from gpudeck.services.box.types import (
    Accelerator,
    Box,
    BoxEvent,
    GpuProcess,
    LaneReading,
    Link,
    MigInstance,
    NvLink,
    PeerAccess,
    Reading,
    Rows,
    Severity,
    Snapshot,
)
from tests.services.box.boxes import busy, card, pair


def worker(tp: int, pp: int, dp: int | None = None, engine: str | None = "gemma") -> GpuProcess:
    return GpuProcess(100 + tp, "VLLM::Worker", 1, "vllm", engine, tp, pp, dp)


def test_topo_prints_the_matrix_and_both_affinities() -> None:
    box = Box((card(0), card(1, numa=None, cpu_affinity=""), card(10, cpu_affinity=None)), (Link(1, 0, "NV12"),))
    assert topo_text(box).splitlines()[:4] == [
        "\tGPU0\tGPU1\tGPU10\tCPU Affinity\tNUMA Affinity",
        "GPU0\t X \tNV12\tSYS\t0-31,64-95\t0",
        "GPU1\tNV12\t X \tSYS\t\t\tN/A",
        "GPU10\tSYS\tSYS\t X \tN/A\t\t0",
    ]
    assert topo_document(box) == {
        "gpus": [0, 1, 10],
        "matrix": [["X", "NV12", "SYS"], ["NV12", "X", "SYS"], ["SYS", "SYS", "X"]],
    }


def test_what_a_card_does_not_report_is_null_and_not_zero() -> None:
    gpu = box_document(Snapshot(pair(), 0.0, (Reading(0), busy(1))))["gpus"][0]
    assert gpu["memory_used_bytes"] is None
    assert gpu["power_watts"] is None
    assert gpu["memory_total_bytes"] == 40 << 30
    assert "n/a of 40.0" in box_text(Snapshot(pair(), 0.0, (Reading(0), busy(1))))


def test_the_words_of_the_design_are_in_the_document() -> None:
    document = box_document(Snapshot(pair(), 0.0, (busy(0, worker(0, 0)), busy(1, worker(1, 0)))))
    assert document["at"] == "1970-01-01T00:00:00.000+00:00"
    assert (document["driver"], document["cuda"]) == ("580.95.05", "13.0")
    assert document["links"] == [{"a": 0, "b": 1, "kind": "NV12"}]
    gpu = document["gpus"][1]
    assert gpu["gpu_utilization_percent"] == 87
    assert gpu["temperature_celsius"] == 61
    assert gpu["processes"] == [
        {
            "pid": 101,
            "name": "VLLM::Worker",
            "command": None,
            "user": "vllm",
            "started_at": None,
            "memory_bytes": 1,
            "mig": None,
            "container": None,
            "engine": "gemma",
            "rank": 1,
            "tp_rank": 1,
            "pp_rank": 0,
            "dp_rank": None,
        }
    ]


def test_the_global_rank_counts_copies_then_stages_then_places() -> None:
    engine = [worker(tp, pp, dp) for dp in range(2) for pp in range(3) for tp in range(2)]
    assert [global_rank(process, engine) for process in engine] == list(range(12))


def test_a_rank_that_needs_sizes_is_not_guessed_for_an_unknown_engine() -> None:
    stranger = worker(1, 1, engine=None)
    assert global_rank(stranger, [stranger]) is None
    assert global_rank(worker(1, 0, engine=None), []) == 1
    assert global_rank(GpuProcess(1, "python"), []) is None


def test_foreign_text_can_not_reach_the_terminal() -> None:
    evil = GpuProcess(1, "\x1b]0;owned\x07", 1, "ro\not")
    text = box_text(Snapshot(pair(), 0.0, (busy(0, evil), Reading(1, fault="\x1b[2Jbad"))))
    assert "\x1b" not in text
    assert "^[]0;owned^G" in text
    assert "fault, see below" in text
    assert "^[[2Jbad" in text


def test_nvlink_peers_are_told_beside_each_card() -> None:
    cards = tuple(card(index) for index in range(4))
    some = Box(cards, (Link(0, 1, "NV2"), Link(3, 0, "NV2"), Link(0, 2, "NV1"), Link(1, 2, "PIX")))
    assert [nvlink_peers(some, gpu) for gpu in cards] == ["NV2 → 1,3 NV1 → 2", "NV2 → 0", "NV1 → 0", "NV2 → 0"]
    mesh = Box(cards, tuple(Link(a, b, "NV18") for a in range(4) for b in range(a)))
    assert nvlink_peers(mesh, cards[1]) == "NV18 → all"
    assert nvlink_peers(pair(), card(0)) == "NV12 → 1"


def test_everything_that_is_known_is_in_document_and_text() -> None:
    lane = NvLink(0, True, 3, 25.0, "gpu", 1, "00000000:11:00.0")
    box = replace(
        pair(),
        gpus=(card(0, nvlinks=(lane, NvLink(1, False))), card(1)),
        peer_access=(PeerAccess(0, 1, "OK", "CNS"),),
        topology_known=False,
    )
    reading = replace(
        busy(0),
        throttle_reasons=("power cap",),
        mig_enabled=True,
        mig=(MigInstance(2, 0, "MIG 3g.20gb", "MIG-0", 20 << 30, 1 << 30, 42),),
        rows=Rows(1, 1, True, True),
        lanes=(LaneReading(0, 5e6, 7e6, 1, 2, 3),),
        nvlink_tx_bytes_s=5e6,
        nvlink_rx_bytes_s=7e6,
    )
    slow = replace(busy(1), at=90.0)
    event = BoxEvent(99.0, Severity.ERROR, "GPU 0: Xid 31.", 0, 31)
    snapshot = Snapshot(box, 100.0, (reading, slow), (event,))

    first, second = box_document(snapshot)["gpus"]
    assert first["nvlink"]["links"][0] == {
        "lane": 0,
        "up": True,
        "version": 3,
        "speed_gbs": 25.0,
        "remote": "gpu",
        "peer": 1,
        "bus": "00000000:11:00.0",
        "tx_bytes_s": 5e6,
        "rx_bytes_s": 7e6,
        "replays": 1,
        "recoveries": 2,
        "crc_errors": 3,
    }
    assert first["nvlink"]["links"][1]["up"] is False
    assert (first["age_seconds"], second["age_seconds"]) == (0, 10)
    assert first["ecc"]["aggregate_corrected"] == 2
    assert first["mig"]["instances"][0]["name"] == "MIG 3g.20gb"
    assert box_document(snapshot)["events"] == [
        {"at": "1970-01-01T00:01:39.000+00:00", "severity": "error", "text": "GPU 0: Xid 31.", "gpu": 0, "xid": 31}
    ]
    text = box_text(snapshot)
    for words in (
        "power cap",
        "slow: read 10 s ago",
        "1 of 2",
        "2, failed, reset wanted",
        "2/0  MIG 3g.20gb  1.0 of 20.0",
        "GPU 0: Xid 31.",
        "0, 2 ever",
    ):
        assert words in text
    assert "SYS is assumed there" in topo_text(box)
    assert "NVLinks that are down: GPU 0 link 1." in topo_text(box)


def test_a_card_that_tells_no_reason_for_its_clock_is_not_said_to_run_free() -> None:
    document = box_document(Snapshot(pair(), 0.0, (Reading(0), busy(1))))
    assert [gpu["throttle_reasons"] for gpu in document["gpus"]] == [None, []]


def test_who_reaches_whom_straight_is_told() -> None:
    cards = tuple(card(index) for index in range(3))
    box = Box(cards, (), peer_access=(PeerAccess(0, 1, "OK"), PeerAccess(0, 2, "OK"), PeerAccess(1, 2, "CNS")))
    readings = tuple(busy(index) for index in range(3))
    rows = box_text(Snapshot(box, 0.0, readings)).split("\n\n")[2].splitlines()
    assert [row.split()[-2] for row in rows] == ["P2P", "all", "0", "0"]
    assert "n/a" in box_text(Snapshot(replace(box, peer_access=()), 0.0, readings)).split("\n\n")[2]


def test_a_driver_that_hides_processes_is_said_to() -> None:
    hidden = replace(busy(0), processes_hidden=True)
    assert "The driver does not tell who is on GPU 0." in box_text(Snapshot(pair(), 0.0, (hidden, busy(1))))


def test_accelerators_of_other_makers_are_named_and_said_to_be_out_of_scope() -> None:
    other = Accelerator("0000:c1:00.0", "AMD", "Instinct\x1b[2J MI300X")
    snapshot = Snapshot(replace(pair(), accelerators=(other,)), 0.0, ())
    assert box_document(snapshot)["accelerators"] == [
        {"address": "0000:c1:00.0", "vendor": "AMD", "name": "Instinct\x1b[2J MI300X"}
    ]
    assert "AMD Instinct^[[2J MI300X at 0000:c1:00.0 is out of scope" in box_text(snapshot)
