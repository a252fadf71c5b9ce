"""One copy more or less: which cards it takes."""

import pytest

from gpudeck.services.box.types import GIB, Box, ComputeCapability, Gpu, Link
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.copies import with_copy, without_copy
from gpudeck.services.plan.types import Placement


def box(*memory_gib: int, links: tuple[Link, ...] = ()) -> Box:
    return Box(tuple(Gpu(i, "A", size * GIB, ComputeCapability(8, 0)) for i, size in enumerate(memory_gib)), links)


BRIDGED = box(24, 24, 24, 24, 24, 24, links=(Link(2, 5, "NV4"), Link(3, 4, "NV4")))


def test_a_copy_takes_the_cards_that_a_bridge_joins() -> None:
    two = with_copy(BRIDGED, Placement(((0, 1),)))
    assert two == Placement(((0, 1), (2, 5)), 2)
    assert with_copy(BRIDGED, two) == Placement(((0, 1), (2, 5), (3, 4)), 3)


def test_a_copy_has_every_stage_of_the_first() -> None:
    assert with_copy(BRIDGED, Placement(((0,), (1,)))) == Placement(((0,), (1,), (2,), (3,)), 2)


def test_a_copy_takes_cards_like_the_first_ones() -> None:
    assert with_copy(box(40, 24, 24, 40), Placement(((0,),))).stages == ((0,), (3,))
    assert with_copy(box(40, 24, 24), Placement(((0,),))).stages == ((0,), (1,))


def test_cards_of_others_are_not_taken() -> None:
    assert with_copy(box(24, 24, 24), Placement(((0,),)), taken={1}).stages == ((0,), (2,))
    with pytest.raises(OperatorError, match=r"takes 1 card, and none are free"):
        with_copy(box(24, 24, 24), Placement(((0,),)), taken={1, 2})
    with pytest.raises(OperatorError, match=r"takes 2 cards, and 1 is free"):
        with_copy(box(24, 24, 24), Placement(((0, 1),)))
    with pytest.raises(OperatorError, match="copy of nothing"):
        with_copy(BRIDGED, Placement())


def test_the_last_copy_goes_and_the_only_one_stays() -> None:
    assert without_copy(Placement(((0, 1), (2, 5), (3, 4)), 3)) == Placement(((0, 1), (2, 5)), 2)
    assert without_copy(Placement(((0,), (1,)))) == Placement(((0,), (1,)))
