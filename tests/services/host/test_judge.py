"""The thresholds at which an engine suffers: each just passed, and just not."""

import pytest

from gpudeck.services.box.types import GIB, MIB
from gpudeck.services.host.judge import concerns, size
from gpudeck.services.host.types import Disk, HostReading, Keeps, Shm
from tests.services.host.hosts import FINE, host


def test_a_machine_that_lacks_nothing_is_of_no_concern() -> None:
    assert concerns(FINE, cards=8) == ()


def test_what_is_not_told_is_of_no_concern() -> None:
    assert concerns(HostReading(at=0.0, memory_total_bytes=GIB, memory_available_bytes=GIB), cards=8) == ()


@pytest.mark.parametrize(
    ("part", "suffers", "bears"),
    [
        ("memory", {"memory_available_bytes": 8 * GIB - 1}, {"memory_available_bytes": 8 * GIB}),
        (
            "memory",
            {"memory_total_bytes": 20 * GIB, "memory_available_bytes": 2 * GIB - 1},
            {"memory_total_bytes": 20 * GIB, "memory_available_bytes": 2 * GIB},
        ),
        ("swap", {"swap_rate": 1.0 * MIB}, {"swap_rate": 1.0 * MIB - 1}),
        ("swap", {"swap_used_bytes": 7.2 * GIB}, {"swap_used_bytes": 7.1 * GIB}),
        ("shared memory", {"shm": Shm(64 * MIB, 64 * MIB)}, {"shm": Shm(GIB, GIB)}),
        ("shared memory", {"shm": Shm(256 * GIB, GIB - 1)}, {"shm": None}),
        ("open files", {"open_files": 65534}, {"open_files": 65535}),
        ("open files", {"open_files": 1024}, {"open_files": None}),
        ("CPU", {"cores": 9}, {"cores": 10}),
        ("CPU", {"cpu_share": 0.9}, {"cpu_share": 0.89}),
        ("load", {"load": (1.0, 128.1, 1.0)}, {"load": (900.0, 128.0, 900.0)}),
    ],
)
def test_one_threshold_is_one_sentence(part: str, suffers: dict[str, object], bears: dict[str, object]) -> None:
    assert concerns(host(**bears), cards=8) == ()
    (concern,) = concerns(host(**suffers), cards=8)
    assert concern.part == part
    assert concern.says.endswith(".")
    assert ": " in concern.says, "a way out follows the colon"


@pytest.mark.parametrize(
    ("disk", "words"),
    [
        (Disk("/data", Keeps.MODELS, 100 * GIB, 20 * GIB), None),
        (Disk("/data", Keeps.MODELS, 100 * GIB, 20 * GIB - 1), "under /data (models): make room for 20 GiB."),
        (Disk("/data", Keeps.MODELS, 100 * GIB, 0, read_only=True), None),
        (Disk("/hub", Keeps.DOWNLOADS, 100 * GIB, 0), "0 MiB are free under /hub"),
        (Disk("/cache", Keeps.VLLM_CACHE, 100 * GIB, 2 * GIB), None),
        (Disk("/cache", Keeps.VLLM_CACHE, 100 * GIB, 2 * GIB - 1), "make room for 2 GiB"),
        (Disk("/net", Keeps.MODELS), "The disk under /net does not answer"),
    ],
)
def test_a_disk_is_judged_by_what_it_keeps(disk: Disk, words: str | None) -> None:
    found = concerns(host(disks=(disk,)))
    assert len(found) == (words is not None)
    if words is not None:
        assert words in found[0].says


def test_the_way_out_of_a_small_shm_is_not_that_of_a_full_one() -> None:
    small, full = (concerns(host(shm=shm))[0].says for shm in (Shm(64 * MIB, 60 * MIB), Shm(8 * GIB, MIB)))
    assert "--shm-size=1g" in small
    assert "delete what ended engines left" in full


def test_cores_are_counted_against_the_cards_only_where_there_are_cards() -> None:
    assert concerns(host(cores=1), cards=0) == ()


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 MiB"),
        (64 * MIB, "64 MiB"),
        (1.5 * GIB, "1.5 GiB"),
        (2 * GIB, "2 GiB"),
        (99.7 * GIB, "100 GiB"),
        (3072 * GIB, "3.0 TiB"),
    ],
)
def test_sizes_are_short(count: float, words: str) -> None:
    assert size(count) == words
