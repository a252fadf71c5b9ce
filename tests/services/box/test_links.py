"""The link rules alone, on lanes and ancestors as drivers tell them."""

import pytest

from gpudeck.services.box.links import CardLanes, Lane, PciAddress, Remote, link_matrix
from gpudeck.services.box.types import Link


def at(bus: int) -> PciAddress:
    return PciAddress(0, bus, 0)


def card(gpu: int, *lanes: tuple[Remote, int | None]) -> CardLanes:
    return CardLanes(gpu, at(gpu + 1), tuple(Lane(kind, None if bus is None else at(bus)) for kind, bus in lanes))


def never_asked(first: int, second: int) -> bool | None:
    raise AssertionError("lanes alone tell this")


def test_lanes_to_one_peer_are_counted_and_go_before_pcie() -> None:
    first = card(0, *[(Remote.GPU, 2)] * 2, (Remote.GPU, 3))
    second, third = card(1, *[(Remote.GPU, 1)] * 2), card(2, (Remote.GPU, 1))
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
    assert link_matrix([card(0), card(1)], {(0, 1): level}, never_asked) == (Link(0, 1, kind),)


def test_a_pair_that_the_driver_does_not_know_is_left_out() -> None:
    assert link_matrix([card(0), card(1)], {}, never_asked) == ()


def test_every_card_on_a_switch_is_a_peer_with_the_lanes_of_the_lesser() -> None:
    whole = [(Remote.SWITCH, 90 + lane % 4) for lane in range(18)]
    links = link_matrix([card(0, *whole), card(1, *whole), card(2, *whole[:17])], {}, never_asked)
    assert [link.kind for link in links] == ["NV18", "NV17", "NV17"]


@pytest.mark.parametrize(("access", "kind"), [(True, "NV6"), (None, "NV6"), (False, "SYS")])
def test_two_boards_of_switches_are_one_where_the_driver_does_not_deny_it(access: bool | None, kind: str) -> None:
    cards = [card(0, *[(Remote.SWITCH, 90)] * 6), card(1, *[(Remote.SWITCH, 91)] * 6)]
    assert link_matrix(cards, {(0, 1): 50}, lambda first, second: access) == (Link(0, 1, kind),)


def test_lanes_to_a_processor_or_to_a_card_elsewhere_join_nothing() -> None:
    cards = [card(0, *[(Remote.OTHER, 77)] * 3), card(1, *[(Remote.OTHER, 78)] * 3)]
    assert link_matrix(cards, {(0, 1): 30}, never_asked) == (Link(0, 1, "PHB"),)


def test_a_card_that_does_not_tell_its_lanes_is_joined_by_its_peers_word() -> None:
    assert link_matrix([card(0), card(1, *[(Remote.GPU, 1)] * 4)], {}, never_asked) == (Link(0, 1, "NV4"),)
