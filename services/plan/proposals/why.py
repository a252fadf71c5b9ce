"""Why a placement is proposed, in one line that an operator would say."""

import re
from collections import Counter
from collections.abc import Sequence

from gpudeck.services.box.types import Box, Gpu
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import MemoryPlan
from gpudeck.services.plan.links import link_rank, weakest_link
from gpudeck.services.plan.types import EngineSpec

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
# Makers' words and what tells two cards of one model apart: the short name is for a sentence, never for a decision.
_MAKERS = re.compile(r"^(NVIDIA |GeForce |Tesla |Quadro )+")
_VARIANT = re.compile(r"(-| )(SXM\d?|PCIE|PCIe|\d+ ?GB|HBM\d?e?|NVL|Server Edition)\b.*$", re.IGNORECASE)


def why(box: Box, model: ModelFacts, spec: EngineSpec, memory: MemoryPlan | None, *, shortened: bool) -> str:
    """The cards, what joins them, and what was done for them; `shortened` where the context was chosen to fit."""
    placement = spec.placement
    gpus = [gpu for card in placement.gpus if (gpu := box.gpu(card)) is not None]
    copies, stages, ranks = placement.replicas, placement.pipeline_parallel_size, placement.tensor_parallel_size
    parts = [_cards(box, gpus)]
    if ranks > 1:
        parts.append(_joined(box, placement.stages))
    if copies > 1:
        shape = f"each on {number(ranks * stages)} cards" if ranks * stages > 1 else "each on a card of its own"
        parts.append(f"{number(copies)} copies, {shape}")
    if stages > 1:
        parts.append(f"{number(stages)} stages" if ranks > 1 else "a card a stage")
    if spec.layer_partition is not None and stages > 1:
        parts.append(f"layers {','.join(str(layers) for layers in spec.layer_partition)} {_partition_why(gpus)}")
    own = model.max_position_embeddings
    if shortened and memory is not None and own is not None:
        parts.append(f"{memory.max_model_len:,} of the model's {own:,} tokens")
    return ", ".join(parts)


def placed(box: Box, spec: EngineSpec) -> str:
    """The cards and what joins them, for a sentence about several engines: "both A100s joined by NV12"."""
    gpus = [gpu for card in spec.placement.gpus if (gpu := box.gpu(card)) is not None]
    joined = f" {_joined(box, spec.placement.stages)}" if spec.placement.tensor_parallel_size > 1 else ""
    return f"{_cards(box, gpus)}{joined}"


def _cards(box: Box, gpus: Sequence[Gpu]) -> str:
    """ "both A100s", "four of the eight H100s", "the 4090 D and both A100s"."""
    counts = Counter(short_name(gpu) for gpu in gpus)
    there = Counter(short_name(gpu) for gpu in box.gpus)
    return " and ".join(_counted(name, count, there[name]) for name, count in counts.items())


def _counted(name: str, count: int, there: int) -> str:
    if count == 1:
        return f"the {name}" if there == 1 else f"one {name}"
    several = name if name[-1:] in "sS" else f"{name}s"
    if count == there:
        return f"both {several}" if count == 2 else f"all {number(count)} {several}"
    return f"{number(count)} of {number(there)} {several}"


def _joined(box: Box, stages: Sequence[tuple[int, ...]]) -> str:
    links = [weakest_link(box, stage) for stage in stages]
    weakest = min(links, key=link_rank)
    if len(stages) == 1:
        return f"joined by {weakest}" if link_rank(weakest) else "whose links are not known"
    groups = " and ".join("+".join(str(card) for card in stage) for stage in stages[:2])
    each = (
        f"{groups} joined by {weakest}"
        if len(stages) == 2 and len(stages[0]) < 5
        else f"groups of {len(stages[0])} joined by {weakest}"
    )
    return each if len(set(links)) == 1 else f"{each} at the weakest"


def _partition_why(gpus: Sequence[Gpu]) -> str:
    if len({gpu.memory_bytes for gpu in gpus}) > 1:
        return "use the larger cards' memory"
    if len({gpu.compute_capability for gpu in gpus}) > 1:
        return "leave more to the faster cards"
    return "leave room for the embedding and the head"


def short_name(gpu: Gpu) -> str:
    """ "A100" of "NVIDIA A100-SXM4-40GB", "RTX 4090" of "NVIDIA GeForce RTX 4090"."""
    bare = _VARIANT.sub("", _MAKERS.sub("", gpu.name))
    return bare or gpu.name or "card"


def number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)
