"""What the simulated engine would hold on each card: the model's weights, shared out over the ranks, and a KV cache."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudeck.services.simulator.options import Options

GIB = 1 << 30
_OVERHEAD = int(1.2 * GIB)  # activations, CUDA graphs and context: about what vLLM needs for models of this size
_DEFAULT_CARD = 24 * GIB
_DTYPE_BYTES = {"float32": 4, "float": 4}  # all others have 2


class RefusedError(Exception):
    """vLLM would not start: `lines` is what it prints, in its own words."""

    def __init__(self, *lines: str) -> None:
        super().__init__(lines[-1])
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Rank:
    gpu: int  # NVML's index
    tp_rank: int
    pp_rank: int
    dp_rank: int
    weights: int  # bytes
    kv_cache: int  # bytes

    @property
    def held(self) -> int:
        return self.weights + self.kv_cache + _OVERHEAD


@dataclass(frozen=True, slots=True)
class Load:
    """The ranks of an engine and what they hold together."""

    architecture: str
    max_model_len: int
    ranks: tuple[Rank, ...]
    kv_cache_tokens: int


def plan(options: Options, environment: Mapping[str, str] = os.environ) -> Load:
    """Share the model out over the cards of CUDA_VISIBLE_DEVICES.  Raises RefusedError in vLLM's words.

    $GPUDECK_SIMULATED_CARDS tells the cards' sizes in bytes, one for every NVML index, separated by commas; without it
    each has 24 GiB.
    """
    config = _config(options.model)
    length = int(config.get("max_position_embeddings") or 8192)
    if options.max_model_len is not None and options.max_model_len > length:
        raise RefusedError(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
            f"  Value error, User-specified max_model_len ({options.max_model_len}) is greater than the derived "
            f"max_model_len (max_position_embeddings={length}.0 or model_max_length=None in model's config.json).",
        )
    visible = [entry for entry in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if entry.strip()]
    gpus = [int(entry) if entry.strip().isdigit() else place for place, entry in enumerate(visible)]
    if not visible:
        gpus = list(range(options.world_size))
    copy = options.tensor_parallel_size * options.pipeline_parallel_size
    if copy > len(gpus) or options.world_size > len(gpus):
        size = copy if copy > len(gpus) else options.world_size
        raise RefusedError(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ParallelConfig",
            f"  Value error, World size ({size}) is larger than the number of available GPUs ({len(gpus)}) in this "
            "node. If this is intentional and you are using:",
            "- ray, set '--distributed-executor-backend ray'.",
            "- multiprocessing, set '--nnodes' appropriately.",
        )
    layers = int(config.get("num_hidden_layers") or 32)
    stages = _stages(layers, options.pipeline_parallel_size, environment.get("VLLM_PP_LAYER_PARTITION"))
    sizes = [int(size) for size in environment.get("GPUDECK_SIMULATED_CARDS", "").split(",") if size.strip().isdigit()]
    weights = _weight_bytes(options, config)
    per_token = _kv_bytes_per_token_and_layer(config, options.tensor_parallel_size)
    ranks: list[Rank] = []
    tokens: list[int] = []
    for number, gpu in enumerate(gpus[: options.world_size]):
        replica, place = divmod(number, copy)
        stage, within = divmod(place, options.tensor_parallel_size)
        share = weights * stages[stage] // layers // options.tensor_parallel_size
        card = sizes[gpu] if gpu < len(sizes) else _DEFAULT_CARD
        budget = int(card * options.gpu_memory_utilization) - share - _OVERHEAD
        tokens.append(budget // (per_token * max(stages[stage], 1)))
        ranks.append(Rank(gpu, within, stage, replica, share, max(budget, 0)))
    least = min(tokens) // 16 * 16
    wanted = options.max_model_len or length
    if least <= 0:
        raise RefusedError(
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
            "initializing the engine.",
        )
    if least < wanted:
        needed, there = (per_token * layers * count / options.pipeline_parallel_size / GIB for count in (wanted, least))
        raise RefusedError(
            f"ValueError: To serve at least one request with the model's max seq len ({wanted}), ({needed:.2f} GiB KV "
            f"cache is needed, which is larger than the available KV cache memory ({there:.2f} GiB). Based on the "
            f"available memory, the estimated maximum model length is {least}. Try increasing "
            "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        )
    architectures = config.get("architectures") or ["LlamaForCausalLM"]
    return Load(str(architectures[0]), wanted, tuple(ranks), least)


def _config(model: str) -> dict[str, Any]:
    path = Path(model)
    if model.endswith(".gguf") or not (model.startswith(("/", ".", "~")) or path.is_dir()):
        return {}  # a hub id or a file: there is nothing here to read
    if not path.is_dir():
        raise RefusedError(
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or "
            f"'namespace/repo_name': '{model}'. Use `repo_type` argument if needed.",
        )
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = None
    if not isinstance(config, dict):
        raise RefusedError(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
            f"  Value error, Invalid repository ID or local directory specified: '{model}'.",
        )
    text = config.get("text_config")
    return config | text if isinstance(text, dict) else config


def _stages(layers: int, stages: int, partition: str | None) -> list[int]:
    """Layers of each stage: VLLM_PP_LAYER_PARTITION, else evenly with the rest counted back from the second-last."""
    if partition:
        try:
            given = [int(part) for part in partition.split(",")]
        except ValueError:
            raise RefusedError(f"ValueError: Invalid partition string: {partition}") from None
        if len(given) != stages:
            raise RefusedError(f"ValueError: len(partitions)={len(given)} does not match pp_size={stages}.")
        if sum(given) != layers:
            raise RefusedError(f"ValueError: sum(partitions)={sum(given)} does not match num_hidden_layers={layers}.")
        return given
    split = [layers // stages] * stages
    for place in range(2, layers % stages + 2):
        split[-place] += 1
    return split


def _weight_bytes(options: Options, config: Mapping[str, Any]) -> int:
    """Of the files in the model's directory; where there are none, of a dense decoder with these dimensions."""
    path = Path(options.model)
    files = [path] if path.is_file() else [*path.glob("*.safetensors"), *path.glob("*.bin")] if path.is_dir() else []
    if files:
        return sum(file.stat().st_size for file in files)
    hidden, layers = int(config.get("hidden_size") or 4096), int(config.get("num_hidden_layers") or 32)
    inner, words = int(config.get("intermediate_size") or 14336), int(config.get("vocab_size") or 128256)
    heads, kv_heads, head = _heads(config)
    attention = hidden * head * (2 * heads + 2 * kv_heads)
    embeddings = words * hidden * (1 if config.get("tie_word_embeddings") else 2)
    parameters = layers * (attention + 3 * hidden * inner) + embeddings
    dtype = options.dtype if options.dtype != "auto" else str(config.get("torch_dtype") or config.get("dtype"))
    return parameters * _DTYPE_BYTES.get(dtype, 2)


def _kv_bytes_per_token_and_layer(config: Mapping[str, Any], tensor_parallel_size: int) -> int:
    _, kv_heads, head = _heads(config)
    return 2 * max(kv_heads // tensor_parallel_size, 1) * head * 2


def _heads(config: Mapping[str, Any]) -> tuple[int, int, int]:
    heads = int(config.get("num_attention_heads") or 32)
    head = int(config.get("head_dim") or int(config.get("hidden_size") or 4096) // heads)
    return heads, int(config.get("num_key_value_heads") or heads), head
