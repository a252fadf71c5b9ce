"""Cards and bridges that a box does not have."""

from gpudeck.services.box.types import Box, Link
from gpudeck.services.plan.what_if import KNOWN, NewBridge, NewCard, possible, with_additions
from tests.services.plan.test_copies import box


def test_a_card_like_another_reaches_the_rest_as_that_one_does_but_over_no_bridge() -> None:
    had = box(24, 24, 24, links=(Link(0, 1, "NV4"), Link(0, 2, "PHB"), Link(1, 2, "PHB")))
    has = with_additions(had, (NewCard(had.gpus[0], 0),))
    added = has.gpu(3)
    assert added is not None
    assert (added.name, added.memory_bytes) == ("what-if A", had.gpus[0].memory_bytes)
    assert [has.link(3, other) for other in range(3)] == ["PHB", "PHB", "PHB"]


def test_on_a_switch_a_new_card_is_joined_to_all() -> None:
    had = box(80, 80, 80, links=(Link(0, 1, "NV18"), Link(0, 2, "NV18"), Link(1, 2, "NV18")))
    has = with_additions(had, (NewCard(had.gpus[0], 0),))
    assert {has.link(3, other) for other in range(3)} == {"NV18"}


def test_a_bridge_takes_the_place_of_the_link_that_was_there() -> None:
    had = box(24, 24, links=(Link(1, 0, "SYS"),))
    has = with_additions(had, (NewBridge(0, 1),))
    assert has.link(0, 1) == "NV4"
    assert len(has.links) == 1


def test_what_can_be_added_is_told_and_can_be_added() -> None:
    had = box(24, 24, 24, links=(Link(0, 1, "NV4"),))
    offers = dict(possible(had, 0))
    assert "one more A, like GPU 0" in offers
    assert "an NVLink bridge (NV4) between GPU 0 and GPU 2" in offers
    assert "an NVLink bridge (NV4) between GPU 0 and GPU 1" not in offers
    for addition in offers.values():
        assert with_additions(had, (addition, addition)) != had
    assert len(possible(Box(()), None)) == len(KNOWN)
    assert with_additions(Box(()), (NewCard(KNOWN[0]),)).gpus[0].index == 0
