"""Moves on a placement: no card is lost or doubled, no stage is left empty, and undo takes everything back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.box.types import Box, ComputeCapability, Gpu
from gpudeck.services.plan import placing
from gpudeck.services.plan.placing import HISTORY_LIMIT, History
from gpudeck.services.plan.types import Placement

CARDS = 6


def box(count: int = CARDS) -> Box:
    return Box(tuple(Gpu(index, "NVIDIA L40S", 1 << 30, ComputeCapability(8, 9)) for index in range(count)))


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """Any placement of some of six cards in stages that are not empty."""
    cards = draw(st.permutations(range(CARDS)))[: draw(st.integers(0, CARDS))]
    stages: list[list[int]] = []
    for card in cards:
        if not stages or draw(st.booleans()):
            stages.append([])
        stages[-1].append(card)
    return Placement(tuple(map(tuple, stages)), draw(st.integers(1, max(1, len(stages)))))


@st.composite
def moves(draw: st.DrawFn) -> tuple[Placement, Placement, int]:
    """A placement, what one move made of it, and the card that was moved."""
    before = draw(placements())
    gpu = draw(st.integers(0, CARDS - 1))
    kind = draw(st.sampled_from(["rank", "new", "swap", "pool"]))
    if kind == "rank" and before.stages:
        stage = draw(st.integers(0, len(before.stages) - 1))
        after = placing.put_on_rank(before, gpu, stage, draw(st.integers(0, len(before.stages[stage]))))
    elif kind == "swap":
        after = placing.swap(before, gpu, draw(st.integers(0, CARDS - 1)))
    elif kind == "pool":
        after = placing.put_in_pool(before, gpu)
    else:
        after = placing.put_on_new_stage(before, gpu, draw(st.integers(0, len(before.stages))))
    return before, after, gpu


@given(moves())
def test_no_card_is_lost_or_doubled(move: tuple[Placement, Placement, int]) -> None:
    _, after, _ = move
    assert sorted((*after.gpus, *placing.unplaced(box(), after))) == list(range(CARDS))


@given(moves())
def test_no_stage_is_left_empty_and_copies_never_outnumber_stages(move: tuple[Placement, Placement, int]) -> None:
    _, after, _ = move
    assert all(after.stages)
    assert 1 <= after.replicas <= max(1, len(after.stages))


@given(placements(), st.integers(0, CARDS - 1), st.data())
def test_a_move_keeps_the_order_of_all_other_cards(before: Placement, gpu: int, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(before.stages)))
    for after in (placing.put_on_new_stage(before, gpu, position), placing.put_in_pool(before, gpu)):
        assert [card for card in after.gpus if card != gpu] == [card for card in before.gpus if card != gpu]


@given(placements(), st.data())
def test_swapping_twice_changes_nothing(before: Placement, data: st.DataObject) -> None:
    one, other = data.draw(st.integers(0, CARDS - 1)), data.draw(st.integers(0, CARDS - 1))
    assert placing.swap(placing.swap(before, one, other), one, other) == before


@given(placements(), st.lists(moves(), max_size=5))
def test_undo_takes_every_change_back_and_redo_makes_it_again(
    first: Placement, steps: list[tuple[Placement, Placement, int]]
) -> None:
    history = History(first)
    for _, after, _ in steps:
        history = history.did(after)
    last = history.present
    changes = len(history.past)
    for _ in range(changes):
        history = history.undone()
    assert history.present == first
    assert history.undone() == history
    for _ in range(changes):
        history = history.redone()
    assert history.present == last
    assert history.redone() == history


def test_a_change_after_undo_forgets_what_could_be_redone() -> None:
    a, b, c = (Placement(((card,),)) for card in range(3))
    history = History(a).did(b).undone().did(c)
    assert history.redone() == history
    assert history.undone().present == a


def test_a_change_that_changes_nothing_leaves_no_trace() -> None:
    history = History(Placement(((0,),)))
    assert history.did(Placement(((0,),))) is history


def test_history_keeps_a_bounded_past() -> None:
    history = History()
    for step in range(HISTORY_LIMIT + 50):
        history = history.did(Placement(((step % 7,),)))
    assert len(history.past) == HISTORY_LIMIT


@pytest.mark.parametrize(
    ("gpu", "stage", "place", "expected"),
    [
        (4, 0, 0, ((4, 0, 1), (2, 3))),  # from the pool to the front
        (4, 1, 2, ((0, 1), (2, 3, 4))),  # to the end
        (0, 1, 1, ((1,), (2, 0, 3))),  # from another stage
        (0, 0, 2, ((1, 0), (2, 3))),  # later in its own stage
        (1, 0, 0, ((1, 0), (2, 3))),  # earlier in its own stage
        (0, 0, 1, ((0, 1), (2, 3))),  # behind itself: where it is
    ],
)
def test_put_on_rank(gpu: int, stage: int, place: int, expected: tuple[tuple[int, ...], ...]) -> None:
    assert placing.put_on_rank(Placement(((0, 1), (2, 3))), gpu, stage, place).stages == expected


def test_the_last_card_of_a_stage_takes_the_stage_with_it() -> None:
    assert placing.put_on_rank(Placement(((0,), (1,))), 0, 1, 0).stages == ((0, 1),)
    assert placing.put_on_new_stage(Placement(((0,), (1,))), 0, 2).stages == ((1,), (0,))


def test_a_card_from_the_pool_sends_the_one_it_replaces_there() -> None:
    after = placing.swap(Placement(((0, 1),)), 5, 1)
    assert after.stages == ((0, 5),)
    assert 1 in placing.unplaced(box(), after)


def test_places_that_are_not_there_are_refused() -> None:
    placement = Placement(((0,),))
    for bad in ((1, 0), (-1, 0), (0, 2), (0, -1)):
        with pytest.raises(ValueError, match="stage"):
            placing.put_on_rank(placement, 3, *bad)
    with pytest.raises(ValueError, match="stage"):
        placing.put_on_new_stage(placement, 3, 2)


def test_replicas_go_through_the_equal_copies_and_back_to_one() -> None:
    placement = Placement(((0,), (1,), (2,), (3,)))
    seen = []
    for _ in range(4):
        seen.append(placement.replicas)
        placement = placing.next_replicas(placement)
    assert seen == [1, 2, 4, 1]
    assert placing.next_replicas(Placement()).replicas == 1


def test_where_a_card_stands() -> None:
    placement = Placement(((0, 3), (2,)))
    assert placing.where(placement, 3) == (0, 1)
    assert placing.where(placement, 5) is None
