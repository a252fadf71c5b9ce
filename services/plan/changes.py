"""What a fix changes in a spec, so that a key or a script can apply it."""

from dataclasses import dataclass, replace

from gpudeck.services.plan.types import EngineSpec, Placement

OptionValue = str | int | float | bool | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Change:
    """The fields of a spec that take another value; what is None or empty here stays as it is.

    `options` holds pairs of a field of EngineOptions and its new value, None for vLLM's default.
    """

    options: tuple[tuple[str, OptionValue], ...] = ()
    placement: Placement | None = None
    layer_partition: tuple[int, ...] | None = None
    environment: tuple[tuple[str, str], ...] | None = None
    shared_gpus: tuple[int, ...] | None = None


def options_change(**options: OptionValue) -> Change:
    """A change of options only, each under its name in EngineOptions."""
    return Change(options=tuple(options.items()))


def apply(change: Change, spec: EngineSpec) -> EngineSpec:
    """The spec with the change made.

    A placement with another number of stages drops the layer partition, which was made for the old ones.
    """
    changed = replace(spec, options=replace(spec.options, **dict(change.options)))  # type: ignore[arg-type]
    if change.placement is not None:
        kept = change.placement.pipeline_parallel_size == spec.placement.pipeline_parallel_size
        partition = spec.layer_partition if kept else None
        changed = replace(changed, placement=change.placement, layer_partition=partition)
    if change.layer_partition is not None:
        changed = replace(changed, layer_partition=change.layer_partition)
    if change.environment is not None:
        changed = replace(changed, environment=change.environment)
    if change.shared_gpus is not None:
        changed = replace(changed, shared_gpus=change.shared_gpus)
    return changed
