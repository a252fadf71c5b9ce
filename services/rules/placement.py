"""The placement by itself: whether its cards exist and its stages have one shape."""

from collections import Counter
from collections.abc import Iterator

from gpudeck.services.plan.changes import Change, options_change
from gpudeck.services.plan.extra import has_option, without_options
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.types import Placement
from gpudeck.services.rules.rule import Plan, Rule, listed

PLACEMENT_EMPTY = Rule(
    "placement-empty",
    Severity.ERROR,
    "No card is placed",
    "vLLM needs at least one GPU; with CUDA_VISIBLE_DEVICES empty it finds none and fails to infer a device.",
    "vllm/platforms: Failed to infer device type",
)
GPU_MISSING = Rule(
    "gpu-missing",
    Severity.ERROR,
    "A card that the box does not have",
    "An entry of CUDA_VISIBLE_DEVICES beyond the box's cards ends in NVMLError_InvalidArgument before anything loads.",
    "run on an H200 (vLLM 0.24): NVMLError_InvalidArgument: Invalid Argument",
)
GPU_TWICE = Rule(
    "gpu-twice",
    Severity.ERROR,
    "A card that stands in two places",
    "Each rank is a process with a card of its own; CUDA ignores a CUDA_VISIBLE_DEVICES with a card listed twice, and "
    "NCCL refuses two ranks on one device.",
    "CUDA programming guide, CUDA_VISIBLE_DEVICES; NCCL: Duplicate GPU detected",
)
STAGE_EMPTY = Rule(
    "stage-empty",
    Severity.ERROR,
    "A stage without a card",
    "Every pipeline stage needs a TP group to run its layers.",
    "vllm/distributed/parallel_state.py: ranks are laid out PP × TP",
)
STAGES_UNEVEN = Rule(
    "tp-uniform",
    Severity.ERROR,
    "Stages of unequal size",
    "There is one --tensor-parallel-size for all stages: rank r is the place r % TP in stage r // TP.",
    "vllm/distributed/parallel_state.py initialize_model_parallel; vllm#27239",
)
REPLICAS_UNEVEN = Rule(
    "replicas-uneven",
    Severity.ERROR,
    "Stages that do not divide into copies",
    "Replicas are copies of one shape (data parallelism): the stages must be a multiple of their number.",
    "vllm/distributed/parallel_state.py: ranks are laid out DP × PP × TP",
)
WORLD_SIZE = Rule(
    "world-size",
    Severity.ERROR,
    "More ranks than cards",
    "vLLM starts one process for each rank and compares their number with the cards that it sees.",
    "vllm/config/parallel.py: World size (N) is larger than the number of available GPUs (M) in this node",
)
PLACEMENT_OVERRIDDEN = Rule(
    "placement-overridden",
    Severity.ERROR,
    "An option or variable that contradicts the placement",
    "The placement is carried by CUDA_VISIBLE_DEVICES and the parallel sizes; a second value would win over it, and "
    "what runs would not be what was judged.",
    "argparse and the environment take the last value",
)

MIG_UUID = Rule(
    "mig-uuid",
    Severity.ERROR,
    "A MIG slice in the engine's environment",
    "A slice is named by its UUID, which vLLM before 0.24 could not read (invalid literal for int()), and a process "
    "sees one slice only, so that a TP group over slices can not be.  gpudeck places whole cards.",
    "vllm#7211, #17047, #13815, #45026; NVIDIA MIG user guide",
)
RULES = (
    MIG_UUID,
    PLACEMENT_EMPTY,
    GPU_MISSING,
    GPU_TWICE,
    STAGE_EMPTY,
    STAGES_UNEVEN,
    REPLICAS_UNEVEN,
    WORLD_SIZE,
    PLACEMENT_OVERRIDDEN,
)
_CARRYING_OPTIONS = (
    "--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp", "--data-parallel-size", "-dp", "--device-ids",
)  # fmt: skip
_CARRYING_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "VLLM_PP_LAYER_PARTITION")


def check(plan: Plan) -> Iterator[Finding]:
    placement = plan.spec.placement
    if not placement.gpus:
        yield PLACEMENT_EMPTY.finding(
            "No card is placed, and vLLM needs at least one.", "Put a card on the board's first stage."
        )
        return
    yield from _cards(plan)
    sizes = [len(stage) for stage in placement.stages]
    if 0 in sizes:
        yield STAGE_EMPTY.finding(
            f"Stage {sizes.index(0)} has no card.",
            "Put a card on it, or take the empty stage away.",
            _without_empty(placement),
        )
    elif not placement.uniform:
        yield STAGES_UNEVEN.finding(
            f"The stages have {listed([str(size) for size in sizes])} cards, but vLLM has one tensor-parallel size for "
            "all.",
            _even_shapes(len(placement.gpus)),
        )
    if placement.replicas < 1 or len(placement.stages) % placement.replicas:
        yield REPLICAS_UNEVEN.finding(
            f"{len(placement.stages)} stages do not divide into {placement.replicas} copies of one shape.",
            "Give each copy the same number of stages.",
        )
    world = plan.tensor_parallel * len(placement.stages)
    if placement.uniform and len(set(placement.gpus)) > len(plan.box.gpus):
        yield WORLD_SIZE.finding(
            f"World size ({world}: TP {plan.tensor_parallel} × {len(placement.stages)} stages) is larger than the "
            f"number of GPUs in this box ({len(plan.box.gpus)}).",
            f"Place at most {len(plan.box.gpus)} cards.",
        )
    yield from _overridden(plan)


def _cards(plan: Plan) -> Iterator[Finding]:
    counts = Counter(plan.spec.placement.gpus)
    there = [gpu.index for gpu in plan.box.gpus]
    missing = [str(card) for card in counts if card not in there]
    if missing:
        has = f"GPUs {there[0]} to {there[-1]}" if len(there) > 1 else f"GPU {there[0]}" if there else "no GPU"
        yield GPU_MISSING.finding(
            f"GPU {listed(missing)} {'is' if len(missing) == 1 else 'are'} not in this box, which has {has}.",
            "Take it out of the placement.",
        )
    twice = [str(card) for card, count in counts.items() if count > 1]
    if twice:
        yield GPU_TWICE.finding(
            f"GPU {listed(twice)} {'stands' if len(twice) == 1 else 'stand'} in the placement more than once; each "
            "rank needs a card of its own.",
            "Leave it in one place only.",
        )


def _without_empty(placement: Placement) -> Change | None:
    stages = tuple(stage for stage in placement.stages if stage)
    return Change(placement=Placement(stages)) if placement.replicas == 1 else None


def _even_shapes(cards: int) -> str:
    shapes = [f"TP {size} × PP {cards // size}" for size in range(cards, 0, -1) if cards % size == 0]
    return f"Make all stages equal: {cards} cards go as {listed(shapes[:4])}."


def _overridden(plan: Plan) -> Iterator[Finding]:
    for option in _CARRYING_OPTIONS:
        if has_option(plan.spec.options.extra, option):
            yield PLACEMENT_OVERRIDDEN.finding(
                f"The option {option} among the extra ones contradicts the placement.",
                "Remove it and place the cards.",
                options_change(extra=without_options(plan.spec.options.extra, {option})),
            )
    for name, value in plan.spec.environment:
        if name == "CUDA_VISIBLE_DEVICES" and "MIG-" in value:
            yield MIG_UUID.finding(
                "CUDA_VISIBLE_DEVICES in the engine's environment names a MIG slice.",
                "Run one engine for each slice in a container that is given the slice, and take the variable out here.",
                Change(environment=tuple(pair for pair in plan.spec.environment if pair[0] != name)),
            )
        elif name in _CARRYING_VARIABLES:
            yield PLACEMENT_OVERRIDDEN.finding(
                f"The variable {name} in the engine's environment contradicts the placement.",
                "Remove it and place the cards.",
                Change(environment=tuple(pair for pair in plan.spec.environment if pair[0] != name)),
            )
