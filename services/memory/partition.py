"""Which layers a pipeline stage holds."""

from gpudeck.services.plan.types import EngineSpec


def default_partition(layers: int, stages: int) -> tuple[int, ...]:
    """vLLM's own split (vllm/distributed/utils.py get_pp_indices).

    What is left over goes to the stages counted back from the second-last, since the last one has the head's work
    besides: 32 layers on 3 stages are 11, 11, 10.
    """
    if stages < 1:
        return ()
    each, over = divmod(layers, stages)
    split = [each] * stages
    for back in range(2, over + 2):
        split[-back] += 1
    return tuple(split)


def partition_of(spec: EngineSpec, layers: int) -> tuple[int, ...]:
    """The layers of each stage under this spec; a layer_partition that does not add up is passed through."""
    if spec.layer_partition is not None:
        return spec.layer_partition
    return default_partition(layers, spec.placement.pipeline_parallel_size)
