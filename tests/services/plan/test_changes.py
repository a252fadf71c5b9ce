"""A change touches what it names, and nothing else."""

from gpudeck.services.plan.changes import Change, apply, options_change
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement

SPEC = EngineSpec("x", "/m", Placement(((0,), (1,))), EngineOptions(max_model_len=8192), layer_partition=(10, 22))


def test_an_option_takes_its_new_value_and_the_others_stay() -> None:
    changed = apply(options_change(gpu_memory_utilization=0.5, extra=("--x",)), SPEC)
    assert changed.options == EngineOptions(max_model_len=8192, gpu_memory_utilization=0.5, extra=("--x",))
    assert changed.placement == SPEC.placement


def test_another_number_of_stages_drops_the_partition_that_was_made_for_the_old() -> None:
    assert apply(Change(placement=Placement(((1,), (0,)))), SPEC).layer_partition == (10, 22)
    assert apply(Change(placement=Placement(((0, 1),))), SPEC).layer_partition is None
    assert apply(Change(layer_partition=(16, 16)), SPEC).layer_partition == (16, 16)


def test_environment_and_shared_cards_are_replaced() -> None:
    changed = apply(Change(environment=(("A", "1"),), shared_gpus=(1,)), SPEC)
    assert (changed.environment, changed.shared_gpus) == ((("A", "1"),), (1,))
    assert apply(Change(), SPEC) == SPEC
