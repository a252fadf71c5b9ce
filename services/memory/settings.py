"""The engine's settings that decide memory, with vLLM's own defaults filled in."""

import json
from dataclasses import dataclass

from gpudeck.services.box.types import GIB, Gpu
from gpudeck.services.memory.lora import Lora, lora_of
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.extra import extra_value, extra_whole, has_option
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.plan.versions import NEWEST_MEASURED, release

AUTO_LENGTH = -1  # --max-model-len auto: the largest that fits
DEFAULT_BLOCK = 16
# 0.21 budgets CUDA graphs by default ("CUDA graph memory profiling is enabled (default since v0.21.0)").  0.24 has the
# higher default share and versions before 0.20 the lower one; it is taken to have come with the graphs, whose room it
# makes.
_GRAPHS_BUDGETED_SINCE = (0, 21, 0)

# From here on every model is served by the second runner, graphs are budgeted there too, and scheduling that runs ahead
# counts as a batch of its own.  Read in 0.32's source; which version between 0.24 and 0.32 was first is not known.
_ONE_RUNNER_SINCE = (0, 32, 0)
_MOST_OFFLOADED = 1 << 16  # GiB, far beyond any host
# Architectures that vLLM 0.24 was seen to serve with its second model runner, which samples in less memory and does not
# count CUDA graphs against the budget.
_SECOND_RUNNER = frozenset(
    {
        "DeepseekV2ForCausalLM",
        "GraniteMoeForCausalLM",
        "LlamaForCausalLM",
        "MistralForCausalLM",
        "Qwen2MoeForCausalLM",
        "Qwen3ForCausalLM",
    }
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the engine would run with.  `max_model_len` is AUTO_LENGTH where vLLM is asked to fit it."""

    utilization: float
    max_model_len: int
    max_num_batched_tokens: int
    max_num_seqs: int
    dtype_bytes: int
    kv_cache_bytes: int  # of one element of the KV cache, where elements are not packed
    block_size: int
    eager: bool
    second_runner: bool
    pooling: bool
    kv_cache_memory_bytes: int | None  # --kv-cache-memory-bytes, which overrides the utilization
    graphs_budgeted: bool
    concurrent_batches: int = 1  # forward passes that may be under way at once
    # Of a later version, where the engine's is not known; else the same.
    later_batches: int = 1
    later_graphs_budgeted: bool = True
    encoder: bool = True  # whether an image or audio encoder is profiled
    kv_cache_dtype: str = "auto"
    expert_copies: int = 1  # copies of the engine that share one set of experts (expert parallelism)
    lora: Lora | None = None
    offload_bytes: int = 0  # of weights, kept in the host's memory
    blocks: int | None = None  # --num-gpu-blocks-override


def default_utilization(vllm_version: str) -> float:
    """gpu-memory-utilization where none is given (vllm/config/cache.py)."""
    return 0.92 if release(vllm_version) >= _GRAPHS_BUDGETED_SINCE else 0.9


def settings_for(model: ModelFacts, spec: EngineSpec, first: Gpu | None, vllm_version: str | None = None) -> Settings:
    """The settings of this spec; unset ones as that vLLM fills them in from `first`, the card of rank 0.

    Where the version is not known, they are those of the newest that was measured.
    """
    unknown, vllm_version = vllm_version is None, vllm_version or NEWEST_MEASURED
    options = spec.options
    environment = dict(spec.environment)
    tokens, seqs = _scheduler_defaults(first)
    seqs = options.max_num_seqs or seqs
    length = options.max_model_len or model.max_position_embeddings or 2048
    if options.max_num_batched_tokens is not None:
        tokens = options.max_num_batched_tokens
    elif length != AUTO_LENGTH:
        tokens = min(tokens, seqs * length)
    pooling = extra_value(options.extra, "--runner") == "pooling"
    dtype_bytes = _dtype_bytes(options.dtype)
    kv_cache_bytes, block = _kv_cache_type(model, options.kv_cache_dtype, dtype_bytes)
    newer = release(vllm_version) >= _ONE_RUNNER_SINCE
    second_runner = _second_runner(model, spec, environment, newer=newer) and not pooling
    stages = max(spec.placement.pipeline_parallel_size, 1)
    by_default = "1" if release(vllm_version) >= _GRAPHS_BUDGETED_SINCE else "0"
    estimated = environment.get("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", by_default) != "0"
    batches = _concurrent_batches(options.extra, stages, newer=newer, second_runner=second_runner)
    later = _concurrent_batches(options.extra, stages, newer=True, second_runner=not pooling) if unknown else batches
    return Settings(
        utilization=default_utilization(vllm_version)
        if options.gpu_memory_utilization is None
        else options.gpu_memory_utilization,
        max_model_len=length,
        max_num_batched_tokens=tokens,
        max_num_seqs=seqs,
        dtype_bytes=dtype_bytes,
        kv_cache_bytes=kv_cache_bytes,
        kv_cache_dtype=options.kv_cache_dtype or "auto",
        block_size=extra_whole(options.extra, "--block-size") or block,
        eager=options.enforce_eager,
        second_runner=second_runner,
        pooling=pooling,
        kv_cache_memory_bytes=extra_whole(options.extra, "--kv-cache-memory-bytes"),
        graphs_budgeted=estimated and (newer or not second_runner),
        concurrent_batches=batches,
        later_batches=later,
        later_graphs_budgeted=estimated and (unknown or newer or not second_runner),
        encoder=not _without_images(options.extra),
        expert_copies=spec.placement.replicas if has_option(options.extra, "--enable-expert-parallel") else 1,
        lora=lora_of(options.extra),
        offload_bytes=_offloaded(options.extra),
        blocks=extra_whole(options.extra, "--num-gpu-blocks-override"),
    )


def _scheduler_defaults(first: Gpu | None) -> tuple[int, int]:
    """max_num_batched_tokens and max_num_seqs of an API server (vllm/engine/arg_utils.py get_batch_defaults).

    vLLM itself looks for "a100" in the card's name there.
    """
    if first is not None and first.memory_bytes >= 160 * GIB:
        return 16384, 1024
    if first is not None and first.memory_bytes >= 70 * GIB and "a100" not in first.name.lower():
        return 8192, 1024
    return 2048, 256


def _second_runner(model: ModelFacts, spec: EngineSpec, environment: dict[str, str], *, newer: bool) -> bool:
    chosen = environment.get("VLLM_USE_V2_MODEL_RUNNER")
    if chosen in ("0", "1"):
        return chosen == "1"
    if extra_value(spec.options.extra, "--speculative-config") is not None:
        return False
    return newer or model.architecture in _SECOND_RUNNER


def _concurrent_batches(extra: tuple[str, ...], stages: int, *, newer: bool, second_runner: bool) -> int:
    """vllm/config/vllm.py max_concurrent_batches: one a stage, and one more where scheduling runs ahead.

    0.24 ran ahead too and did not count it: its runs on an H200 fit one batch exactly.
    """
    ahead = newer and not has_option(extra, "--no-async-scheduling")
    if ahead and (second_runner or stages == 1):
        return stages + 1
    return stages


def _without_images(extra: tuple[str, ...]) -> bool:
    """Whether no image, video or sound is allowed, so that vLLM does not profile the encoder."""
    if has_option(extra, "--language-model-only"):
        return True
    try:
        limits = json.loads(extra_value(extra, "--limit-mm-per-prompt") or "null")
    except (ValueError, RecursionError):
        return False
    return isinstance(limits, dict) and bool(limits) and all(limit == 0 for limit in limits.values())


def _offloaded(extra: tuple[str, ...]) -> int:
    """--cpu-offload-gb, in bytes; 0 without it, or where it is no number that vLLM would take."""
    try:
        share = float(extra_value(extra, "--cpu-offload-gb") or 0)
    except ValueError:
        return 0
    return int(share * GIB) if 0 < share < _MOST_OFFLOADED else 0


def _dtype_bytes(dtype: str | None) -> int:
    # "auto" loads float32 checkpoints in a 16-bit type (vllm/config/model.py _resolve_auto_dtype).
    return 4 if dtype in ("float", "float32") else 2


def _kv_cache_type(model: ModelFacts, kv_cache_dtype: str | None, dtype_bytes: int) -> tuple[int, int]:
    """Bytes of an element of the KV cache, and the tokens of a block."""
    if kv_cache_dtype in ("bfloat16", "float16"):
        return 2, DEFAULT_BLOCK  # also where the model runs in float32
    if kv_cache_dtype is None or not kv_cache_dtype.startswith("fp8"):
        return dtype_bytes, DEFAULT_BLOCK
    # FlashMLA, the backend for an fp8 latent cache, works in blocks of 64.
    return 1, 64 if model.mla is not None else DEFAULT_BLOCK
