"""The room that vLLM sets aside for LoRA adapters, beside the weights (vllm/lora/layers)."""

from dataclasses import dataclass

from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.extra import extra_whole, has_option


@dataclass(frozen=True, slots=True)
class Lora:
    """--max-loras and --max-lora-rank, with vLLM's defaults."""

    slots: int = 1
    rank: int = 16


def lora_of(extra: tuple[str, ...]) -> Lora | None:
    """What --enable-lora and its options among `extra` ask for; None without it."""
    if not has_option(extra, "--enable-lora"):
        return None
    default = Lora()
    slots, rank = extra_whole(extra, "--max-loras"), extra_whole(extra, "--max-lora-rank")
    return Lora(slots or default.slots, rank or default.rank)


def adapter_elements(model: ModelFacts, lora: Lora | None, layers: int, ranks: int, *, ends: int) -> int:
    """Elements on each of `ranks` ranks of a stage of `layers` layers; `ends` vocabulary tables are on it.

    For each adapter slot, every linear layer gets a matrix A (rank × inputs) and a matrix B (outputs × rank).  Tensor
    parallelism divides B of column-parallel layers and A of row-parallel ones.  An engine on an H200 took 1443 MiB for
    four slots of rank 64 on Llama-3.1-8B.
    """
    if lora is None:
        return 0
    hidden = model.hidden_size
    heads = model.attention_heads * model.head_dim / ranks
    kv = max(model.head_dim, model.kv_heads * model.head_dim / ranks)
    attention = 3 * hidden + heads + 2 * kv + heads + hidden
    size = model.experts.intermediate_size if model.experts is not None else model.intermediate_size
    gates = 2 if model.gated_mlp else 1
    mlp = gates * (hidden + size / ranks) + size / ranks + hidden
    if model.experts is not None:
        mlp *= model.experts.count
    vocabulary = ends * (hidden + model.vocab_size)
    return int((layers * (attention + mlp) + vocabulary) * lora.slots * lora.rank)
