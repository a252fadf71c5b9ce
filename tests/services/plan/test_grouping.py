"""Which cards go together, on boxes from public reports and against every grouping that there is."""

from itertools import combinations
from pathlib import Path

import pytest

from gpudeck.services.box.boxfile import load_box_file
from gpudeck.services.box.types import Box, Link
from gpudeck.services.plan.proposals.cards import Cards, cards_of
from gpudeck.services.plan.proposals.grouping import Groups, groupings, quality
from tests.services.rules.plans import CROSSED, MIXED, a100, h100, rtx3090, rtx4090

BOXES = Path(__file__).parents[2] / "data" / "boxes"
FIRST_HALF, SECOND_HALF = {0, 1, 2, 3}, {4, 5, 6, 7}


def pairs(*groups: str) -> list[set[int]]:
    return [{int(digit) for digit in group} for group in groups]


def within(*parts: set[int], size: int) -> list[set[int]]:
    return [set(chosen) for part in parts for chosen in combinations(sorted(part), size)]


# What stands in the reports, or follows from them: same model first, then the weakest link, all links, and the socket.
# (box, size, the groups that are equally right)
EXPECTED: list[tuple[str, int, list[set[int]]]] = [
    ("01-v100-16g-8x-dgx1-cube-mesh", 2, pairs("03", "12", "23", "47", "56", "67")),
    ("01-v100-16g-8x-dgx1-cube-mesh", 4, pairs("0123", "4567")),
    ("03-v100-8x-cube-mesh-other-numbering", 2, pairs("02", "13", "23", "45", "46", "57")),
    ("03-v100-8x-cube-mesh-other-numbering", 4, pairs("0123", "4567")),
    ("05-aws-p3-8xlarge-v100-4x", 2, pairs("03", "12", "23")),
    ("05-aws-p3-8xlarge-v100-4x", 4, pairs("0123")),
    ("07-vm-v100-8x-phb-instead-of-sys", 2, pairs("03", "04", "12", "15", "23", "47", "56", "67")),
    ("07-vm-v100-8x-phb-instead-of-sys", 4, pairs("0123", "4567")),
    ("09-power9-v100-3x-nvlink-isolated", 2, within({0, 1, 2}, size=2)),
    ("10-dgx2-v100-16x-nv6", 2, within(set(range(8)), set(range(8, 16)), size=2)),
    ("10-dgx2-v100-16x-nv6", 4, within(set(range(8)), set(range(8, 16)), size=4)),
    ("11-dgx-a100-8x-nv12-nps4", 2, pairs("01", "23", "45", "67")),
    ("11-dgx-a100-8x-nv12-nps4", 4, within(set(range(8)), size=4)),
    ("13-leonardo-a100-64g-4x-nv4-mesh", 2, within(FIRST_HALF, size=2)),
    ("13-leonardo-a100-64g-4x-nv4-mesh", 4, pairs("0123")),
    ("15-slurm-a100-4x-blank-affinity", 2, pairs("01", "23")),
    ("15-slurm-a100-4x-blank-affinity", 4, pairs("0123")),
    ("16-a100-pcie-80g-4x-nv12-pairs", 2, pairs("01", "23")),
    ("16-a100-pcie-80g-4x-nv12-pairs", 4, pairs("0123")),
    ("17-azure-nc96-a100-4x-numa-per-gpu", 2, pairs("01", "23")),
    ("17-azure-nc96-a100-4x-numa-per-gpu", 4, pairs("0123")),
    ("19-a100-sxm-3x-plus-pcie-1x", 2, pairs("01")),
    ("19-a100-sxm-3x-plus-pcie-1x", 4, pairs("0123")),
    ("21-h100-4x-nv6-mesh", 2, within(FIRST_HALF, size=2)),
    ("21-h100-4x-nv6-mesh", 4, pairs("0123")),
    ("23-hgx-h100-8x-plain", 2, within(FIRST_HALF, SECOND_HALF, size=2)),
    ("23-hgx-h100-8x-plain", 4, pairs("0123", "4567")),
    ("24-b200-8x-nv18-16-nics", 2, within(FIRST_HALF, SECOND_HALF, size=2)),
    ("24-b200-8x-nv18-16-nics", 4, pairs("0123", "4567")),
    ("25-gb200-4x-numa-lists", 2, pairs("01", "23")),
    ("25-gb200-4x-numa-lists", 4, pairs("0123")),
    ("26-h200-nvl-8x-two-islands", 2, within(FIRST_HALF, SECOND_HALF, size=2)),
    ("26-h200-nvl-8x-two-islands", 4, pairs("0123", "4567")),
    ("27-a6000-3x-one-pair", 2, pairs("01")),
    ("28-a6000-8x-four-pairs", 2, pairs("01", "23", "45", "67")),
    ("28-a6000-8x-four-pairs", 4, pairs("0123", "4567")),
    ("30-a30-4x-nv4-pairs", 2, pairs("01", "23")),
    ("30-a30-4x-nv4-pairs", 4, pairs("0123")),
    ("31-a5500-4x-crossed-bridges", 2, pairs("03", "12")),
    ("31-a5500-4x-crossed-bridges", 4, pairs("0123")),
    ("33-3090-2x-nv4", 2, pairs("01")),
    ("35-2080ti-4x-one-bridge-on-2-3", 2, pairs("23")),
    ("35-2080ti-4x-one-bridge-on-2-3", 4, pairs("0123")),
    ("36-2080ti-22g-titan-rtx-vm", 2, pairs("01")),
    ("38-rtx8000-2x-v100-3x-interleaved", 2, pairs("02", "13", "14", "34")),
    ("40-p40-3x-v100-3x-no-topology", 2, pairs("34")),
    ("44-dgx-station-a100-4x-plus-display", 2, within({0, 1, 2, 4}, size=2)),
    ("44-dgx-station-a100-4x-plus-display", 4, pairs("0124")),
    ("47-wsl2-3090-2x", 2, pairs("01")),
    ("48-l40s-4x-vm-phb-pairs", 2, pairs("01", "23")),
    ("48-l40s-4x-vm-phb-pairs", 4, pairs("0123")),
    ("51-4090-8x-all-sys-two-sockets", 2, within(FIRST_HALF, SECOND_HALF, size=2)),
    ("51-4090-8x-all-sys-two-sockets", 4, pairs("0123", "4567")),
    ("53-3060ti-3x-numa-range", 2, pairs("12")),
    ("54-p40-8x-old-driver-soc", 2, within(FIRST_HALF, SECOND_HALF, size=2)),
    ("54-p40-8x-old-driver-soc", 4, pairs("0123", "4567")),
    ("56-5060ti-4x-patched-p2p", 2, within(FIRST_HALF, size=2)),
    ("56-5060ti-4x-patched-p2p", 4, pairs("0123")),
    ("57-rtxpro6000-4x-vm-phb", 2, within(FIRST_HALF, size=2)),
    ("57-rtxpro6000-4x-vm-phb", 4, pairs("0123")),
    ("60-a10g-4x-g5-12xlarge", 2, within(FIRST_HALF, size=2)),
    ("60-a10g-4x-g5-12xlarge", 4, pairs("0123")),
]  # fmt: skip


def real(name: str) -> Cards:
    return cards_of(load_box_file(BOXES / f"{name}.json").box, {})


@pytest.mark.parametrize(("name", "size", "right"), EXPECTED)
def test_the_best_linked_cards_stand_first(name: str, size: int, right: list[set[int]]) -> None:
    best = groupings(real(name), size, 1)[0]
    assert set(best[0]) in right


@pytest.mark.parametrize(
    ("name", "size", "whole"),
    [
        ("01-v100-16g-8x-dgx1-cube-mesh", 2, ((0, 3), (1, 2), (4, 7), (5, 6))),
        ("03-v100-8x-cube-mesh-other-numbering", 2, ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("07-vm-v100-8x-phb-instead-of-sys", 4, ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("16-a100-pcie-80g-4x-nv12-pairs", 2, ((0, 1), (2, 3))),
        ("28-a6000-8x-four-pairs", 2, ((0, 1), (2, 3), (4, 5), (6, 7))),
        ("31-a5500-4x-crossed-bridges", 2, ((0, 3), (1, 2))),
        ("35-2080ti-4x-one-bridge-on-2-3", 2, ((0, 1), (2, 3))),
        ("51-4090-8x-all-sys-two-sockets", 2, ((0, 1), (2, 3), (4, 5), (6, 7))),
        ("38-rtx8000-2x-v100-3x-interleaved", 2, ((0, 2), (1, 3))),
    ],
)
def test_all_cards_are_divided_so_that_no_group_is_badly_linked(name: str, size: int, whole: Groups) -> None:
    assert groupings(real(name), size, len(whole))[0] == whole


def every(cards: list[int], size: int, count: int) -> list[Groups]:
    if count == 0:
        return [()]
    found = []
    for group in combinations(cards, size):
        rest = [card for card in cards if card not in group and card > group[0]]
        found += [(group, *others) for others in every(rest, size, count - 1)]
    return found


IRREGULAR = Box(
    (a100(0), a100(1), rtx4090(2), a100(3), rtx4090(4), rtx3090(5), rtx3090(6)),
    (Link(0, 3, "NV4"), Link(1, 3, "NV2"), Link(2, 4, "PHB"), Link(0, 1, "PIX"), Link(5, 6, "NV4"), Link(2, 1, "NODE")),
)


@pytest.mark.parametrize("box", [CROSSED, MIXED, IRREGULAR, Box(tuple(h100(index) for index in range(6)))])
@pytest.mark.parametrize(("size", "count"), [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1)])
def test_no_grouping_is_better_put_together(box: Box, size: int, count: int) -> None:
    cards = cards_of(box, {1: 3 << 30})
    found = groupings(cards, size, count, mixed=True)
    best = max((quality(cards, groups) for groups in every(sorted(cards.gpus), size, count)), default=None)
    assert (quality(cards, found[0]) if found else None) == best


def test_cards_that_may_change_places_are_counted_once() -> None:
    box = Box(tuple(h100(index) for index in range(16)))
    cards = cards_of(box, {})
    assert cards.classes == (tuple(range(16)),)
    assert groupings(cards, 4, 2) == [((0, 1, 2, 3), (4, 5, 6, 7))]


def test_sixteen_cards_on_bridges_keep_to_them() -> None:
    box = Box(tuple(rtx3090(index) for index in range(16)), tuple(Link(at, at + 8, "NV4") for at in range(8)))
    assert groupings(cards_of(box, {}), 2, 8)[0] == tuple((at, at + 8) for at in range(8))


def test_a_group_mixes_capabilities_only_where_allowed() -> None:
    cards = cards_of(Box((rtx4090(0), a100(1))), {})
    assert groupings(cards, 2, 1) == []
    assert groupings(cards, 2, 1, mixed=True) == [((0, 1),)]


def test_a_card_that_nobody_uses_is_taken_first() -> None:
    cards = cards_of(Box(tuple(h100(index) for index in range(4))), {0: 2 << 30, 1: 10 << 20})
    assert groupings(cards, 2, 1)[0] == ((1, 2),)
