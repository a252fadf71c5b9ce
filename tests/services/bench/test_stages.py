"""Which stage the others wait for."""

from dataclasses import replace

import pytest

from gpudeck.services.bench.stages import balance_of, stage_balance
from gpudeck.services.bench.types import CardUse
from tests.services.bench.results import result


def uses(*busy: tuple[float, float | None]) -> tuple[CardUse, ...]:
    """Utilisation and memory activity, card by card."""
    return tuple(CardUse(gpu, utilization, memory) for gpu, (utilization, memory) in enumerate(busy))


def test_the_slow_stage_is_named_with_the_split_that_evens_it_out() -> None:
    # Stage 1's card takes twice as long for a layer: NVML calls both busy, since the other one spins while it waits.
    balance = stage_balance(((0,), (1,)), (16, 16), uses((99, 35.0), (99, 70.0)))
    assert balance is not None
    assert balance.slowest == 1
    assert balance.busy == pytest.approx((0.5, 1.0))
    assert balance.better == (21, 11)
    assert balance.gain == pytest.approx(16 / 11, rel=0.01)
    said = balance.sentence()
    assert "wait for stage 1: stage 0 waits 50% of the time" in said
    assert "--layer-partition 21,11 in place of 16,16" in said
    assert "counts as utilisation" not in said


def test_without_memory_activity_utilisation_stands_in_and_that_is_said() -> None:
    balance = stage_balance(((0,), (1,)), (16, 16), uses((60, None), (90, None)))
    assert balance is not None
    assert not balance.by_memory
    assert "counts as utilisation" in balance.sentence()


def test_within_a_stage_the_slowest_rank_counts() -> None:
    balance = stage_balance(((0, 1), (2, 3)), (16, 16), uses((9, 20.0), (9, 60.0), (9, 60.0), (9, 10.0)))
    assert balance is not None
    assert balance.better is None
    assert balance.sentence() == "No stage waits long for another: the layer split is even."


@pytest.mark.parametrize(
    ("layers", "cards"),
    [
        ((16,), uses((90, 50.0), (90, 50.0))),  # the model was not read
        ((16, 16), uses((90, 50.0))),  # a card is missing
        ((16, 16), uses((1, None), (2, None))),  # next to no load
        ((16, 16), (CardUse(0), CardUse(1))),  # the driver tells nothing
    ],
)
def test_what_can_not_be_told_is_not(layers: tuple[int, ...], cards: tuple[CardUse, ...]) -> None:
    assert stage_balance(((0,), (1,)), layers, cards) is None


def test_every_split_keeps_its_layers_and_is_never_slower() -> None:
    for slow in (1.0, 1.3, 2.0, 5.0):
        for layers in ((16, 16, 16), (1, 1, 46), (40, 4, 4)):
            balance = stage_balance(((0,), (1,), (2,)), layers, uses((9, 80 / slow), (9, 80.0), (9, 60.0)))
            assert balance is not None
            if balance.better is not None:
                assert sum(balance.better) == sum(layers)
                assert min(balance.better) >= 1
                assert balance.gain >= 1


def test_of_a_result_the_greatest_load_counts() -> None:
    staged = result("pp", (1,), (2,))
    assert balance_of(staged) is not None
    assert balance_of(result("tp", (1, 2))) is None
    assert balance_of(replace(staged, levels=())) is None
    assert balance_of(replace(staged, targets=staged.targets * 2)) is None
