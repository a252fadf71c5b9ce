"""One card in the air: what it can land on, how keys walk the targets, and that nothing is lost on the way."""

from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.plan.dragging import Direction, Drag, NewStage, OnCard, Pool, Rank, Target, land, neighbour
from gpudeck.services.plan.types import Placement

CARDS = 5
PAIRS = Placement(((0, 1), (2, 3)))
LEFT, RIGHT, UP, DOWN = Direction.LEFT, Direction.RIGHT, Direction.UP, Direction.DOWN


@st.composite
def drags(draw: st.DrawFn) -> Drag:
    cards = draw(st.permutations(range(CARDS)))[: draw(st.integers(0, CARDS))]
    stages: list[list[int]] = []
    for card in cards:
        if not stages or draw(st.booleans()):
            stages.append([])
        stages[-1].append(card)
    return Drag(Placement(tuple(map(tuple, stages))), draw(st.integers(0, CARDS - 1)))


@given(drags())
def test_every_target_changes_the_placement_and_loses_no_card(drag: Drag) -> None:
    everything = set(drag.placement.gpus) | {drag.gpu}
    for target in drag.targets():
        after = drag.hover(target).drop()
        assert after != drag.placement
        assert len(after.gpus) == len(set(after.gpus))
        assert set(after.gpus) <= everything


@given(drags(), st.lists(st.sampled_from(Direction), max_size=30))
def test_keys_stay_on_targets_that_are_there(drag: Drag, keys: list[Direction]) -> None:
    for key in keys:
        drag = drag.step(key)
        assert drag.target is None or drag.target in drag.targets()


@given(drags())
def test_keys_reach_every_target(drag: Drag) -> None:
    reached: set[Target | None] = set()
    todo = [drag]
    while todo:
        here = todo.pop()
        if here.target in reached:
            continue
        reached.add(here.target)
        todo.extend(here.step(direction) for direction in Direction)
    assert reached == {None, *drag.targets()}


@given(drags())
def test_cancel_gives_back_what_was_there(drag: Drag) -> None:
    for target in drag.targets():
        assert drag.hover(target).cancel() == drag.placement


def test_a_target_that_changes_nothing_is_the_own_place() -> None:
    drag = Drag(PAIRS, 0).hover(Rank(1, 0))
    assert drag.hover(Rank(0, 1)).target is None
    assert drag.hover(OnCard(0)).target is None
    assert drag.hover(None).drop() == PAIRS


def test_landing() -> None:
    assert land(PAIRS, 4, Rank(0, 2)).stages == ((0, 1, 4), (2, 3))
    assert land(PAIRS, 4, OnCard(2)).stages == ((0, 1), (4, 3))
    assert land(PAIRS, 1, OnCard(2)).stages == ((0, 2), (1, 3))
    assert land(PAIRS, 1, NewStage(1)).stages == ((0,), (1,), (2, 3))
    assert land(PAIRS, 1, Pool()).stages == ((0,), (2, 3))


def test_the_first_card_of_all_has_one_target() -> None:
    assert Drag(Placement(), 2).targets() == (NewStage(0),)
    assert Drag(Placement(), 2).step(RIGHT).drop().stages == ((2,),)


def test_a_stage_entered_from_the_side_offers_its_end() -> None:
    drag = Drag(PAIRS, 4)
    assert drag.step(RIGHT).target == NewStage(0)
    entered = drag.step(RIGHT).step(RIGHT)
    assert entered.target == Rank(0, 2)
    assert entered.step(UP).target == OnCard(1)
    assert entered.step(UP).step(UP).target == Rank(0, 1)
    assert entered.step(DOWN) == entered
    assert entered.step(LEFT).step(LEFT).target is None


def test_no_key_makes_a_gap_of_a_stage_that_would_only_move_onto_itself() -> None:
    targets = Drag(Placement(((0,), (1, 2))), 0).targets()
    assert NewStage(0) not in targets
    assert NewStage(1) not in targets
    assert NewStage(2) in targets


def test_the_neighbour_of_a_card() -> None:
    pool = (4, 5)
    assert neighbour(PAIRS, pool, None, DOWN) == 4
    assert neighbour(PAIRS, pool, 5, RIGHT) == 1
    assert neighbour(PAIRS, pool, 1, RIGHT) == 3
    assert neighbour(PAIRS, pool, 3, RIGHT) == 3
    assert neighbour(PAIRS, pool, 3, UP) == 2
    assert neighbour(PAIRS, pool, 2, UP) == 2
    assert neighbour(PAIRS, (), 0, LEFT) == 0
    assert neighbour(Placement(), (), None, UP) is None
    assert neighbour(PAIRS, pool, 9, UP) == 4
