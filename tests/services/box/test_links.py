"""The link rules alone, on lanes and ancestors as drivers tell them."""

import pytest

from gpudeck.services.box.links import CardLanes, Lane, PciAddress, Remote, link_matrix, nvlinks_of, remote_of
from gpudeck.services.box.types import Link, NvLink

NVIDIA, IBM = 0x10DE, 0x1014


def at(bus: int) -> PciAddress:
    return PciAddress(0, bus, 0)


def lane(remote: Remote, bus: int | None, up: bool | None = True) -> tuple[Remote, int | None, bool | None]:
    return remote, bus, up


def card(gpu: int, *lanes: tuple[Remote, int | None, bool | None]) -> CardLanes:
    return CardLanes(
        gpu,
        at(gpu + 1),
        tuple(
            Lane(number, up, remote, None if bus is None else at(bus)) for number, (remote, bus, up) in enumerate(lanes)
        ),
    )


def to(gpu: int, count: int = 1, up: bool | None = True) -> list[tuple[Remote, int | None, bool | None]]:
    """Lanes to that card of the box."""
    return [lane(Remote.GPU, gpu + 1, up)] * count


def never_asked(first: int, second: int) -> bool | None:
    raise AssertionError("lanes alone tell this")


def kinds(cards: list[CardLanes], levels: dict[tuple[int, int], int] | None = None) -> list[str]:
    return [link.kind for link in link_matrix(cards, levels or {}, never_asked)]


def test_lanes_to_one_peer_are_counted_and_go_before_pcie() -> None:
    first, second, third = card(0, *to(1, 2), *to(2)), card(1, *to(0, 2)), card(2, *to(0))
    levels = {(0, 1): 10, (0, 2): 50, (1, 2): 40}
    assert link_matrix([first, second, third], levels, never_asked) == (
        Link(0, 1, "NV2"),
        Link(0, 2, "NV1"),
        Link(1, 2, "NODE"),
    )


@pytest.mark.parametrize(
    ("level", "kind"), [(0, "PIX"), (10, "PIX"), (20, "PXB"), (30, "PHB"), (40, "NODE"), (50, "SYS")]
)
def test_without_nvlink_the_common_ancestor_tells(level: int, kind: str) -> None:
    assert kinds([card(0), card(1)], {(0, 1): level}) == [kind]


def test_a_pair_that_the_driver_does_not_know_is_left_out() -> None:
    assert kinds([card(0), card(1)]) == []


def test_a_lane_that_is_down_at_either_end_joins_nothing() -> None:
    assert kinds([card(0, *to(1, 3), *to(1, 1, up=False)), card(1, *to(0, 4))]) == ["NV3"]
    assert kinds([card(0, *to(1, 4, up=False)), card(1, *to(0, 4))], {(0, 1): 30}) == ["PHB"]


def test_a_lane_of_which_one_end_does_not_tell_counts_by_the_other() -> None:
    assert kinds([card(0, *to(1, 3), lane(Remote.UNKNOWN, None, None)), card(1, *to(0, 4))]) == ["NV4"]
    nowhere = [lane(Remote.UNKNOWN, None)] * 4
    assert kinds([card(0, *nowhere), card(1, *to(0, 4))]) == ["NV4"]


@pytest.mark.parametrize("silent", [[], [lane(Remote.UNKNOWN, None, None)] * 18])
def test_a_card_that_tells_of_no_lane_is_joined_by_its_peers_word(
    silent: list[tuple[Remote, int | None, bool | None]],
) -> None:
    assert kinds([card(0, *silent), card(1, *to(0, 4))]) == ["NV4"]


def test_every_card_on_a_switch_is_a_peer_with_the_lanes_of_the_lesser() -> None:
    whole = [lane(Remote.SWITCH, 90 + number % 4) for number in range(18)]
    assert kinds([card(0, *whole), card(1, *whole), card(2, *whole[:17])]) == ["NV18", "NV17", "NV17"]


@pytest.mark.parametrize(("access", "kind"), [(True, "NV6"), (None, "NV6"), (False, "SYS")])
def test_two_boards_of_switches_are_one_where_the_driver_does_not_deny_it(access: bool | None, kind: str) -> None:
    cards = [card(0, *[lane(Remote.SWITCH, 90)] * 6), card(1, *[lane(Remote.SWITCH, 91)] * 6)]
    assert link_matrix(cards, {(0, 1): 50}, lambda first, second: access) == (Link(0, 1, kind),)


def test_lanes_to_a_processor_or_to_a_card_elsewhere_join_nothing() -> None:
    elsewhere = [card(0, *[lane(Remote.OTHER, 77)] * 3), card(1, *[lane(Remote.OTHER, 78)] * 3)]
    assert link_matrix(elsewhere, {(0, 1): 30}, lambda first, second: False) == (Link(0, 1, "PHB"),)
    assert kinds([card(0, *[lane(Remote.CPU, 77)] * 3), card(1, *[lane(Remote.CPU, 78)] * 3)], {(0, 1): 50}) == ["SYS"]


@pytest.mark.parametrize(
    ("lanes", "cards", "kind"),
    [
        (4, 2, "NV4"),  # one bridge
        (12, 4, "NV4"),  # a mesh of four A100s
        (18, 4, "NV6"),  # a mesh of four H100s
        (12, 8, "NV12"),  # more peers than the lanes go round: a switch
        (6, 16, "NV6"),
    ],
)
def test_where_no_other_end_is_told_access_over_nvlink_tells(lanes: int, cards: int, kind: str) -> None:
    """A virtual machine whose driver tells of lanes only that they are up."""
    box = [card(index, *[lane(Remote.UNKNOWN, None)] * lanes) for index in range(cards)]
    links = link_matrix(box, {}, lambda first, second: True)
    assert [link.kind for link in links] == [kind] * (cards * (cards - 1) // 2)
    assert link_matrix(box, {}, lambda first, second: None) == ()
    only = link_matrix(box, {}, lambda first, second: {first, second} == {0, 1})
    assert only == (Link(0, 1, f"NV{lanes}"),)


@pytest.mark.parametrize(
    ("told", "address", "vendor", "remote"),
    [
        (Remote.GPU, at(1), NVIDIA, Remote.GPU),
        (Remote.GPU, at(9), NVIDIA, Remote.OTHER),
        (Remote.GPU, None, None, Remote.OTHER),
        (Remote.SWITCH, None, None, Remote.SWITCH),
        (Remote.CPU, at(9), IBM, Remote.CPU),
        (Remote.UNKNOWN, at(1), NVIDIA, Remote.GPU),
        (Remote.UNKNOWN, at(9), NVIDIA, Remote.SWITCH),
        (Remote.UNKNOWN, at(9), IBM, Remote.CPU),
        (Remote.UNKNOWN, None, None, Remote.UNKNOWN),
    ],
)
def test_what_a_lane_leads_to(told: Remote, address: PciAddress | None, vendor: int | None, remote: Remote) -> None:
    assert remote_of(told, address, vendor, {at(1): 0}) is remote


def test_nvlinks_are_shown_with_their_peers_and_those_that_are_down() -> None:
    one = card(0, *to(1), *to(1, up=False), lane(Remote.SWITCH, 90), lane(Remote.UNKNOWN, None, None))
    assert nvlinks_of(one, {at(2): 1}) == (
        NvLink(0, True, remote="gpu", peer=1, bus="00000000:02:00.0"),
        NvLink(1, False, remote="gpu", peer=1, bus="00000000:02:00.0"),
        NvLink(2, True, remote="switch", bus="00000000:5A:00.0"),
    )
