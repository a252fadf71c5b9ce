"""The engine's settings that decide memory, with vLLM's own defaults filled in."""

from dataclasses import dataclass

from gpudeck.services.box.types import GIB, Gpu
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.extra import extra_value, extra_whole
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.plan.versions import NEWEST_KNOWN, release

AUTO_LENGTH = -1  # --max-model-len auto: the largest that fits
DEFAULT_BLOCK = 16
_HIGHER_SHARE_SINCE = (0, 20, 0)

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
    kv_cache_bytes: int  # of one element of the KV cache
    block_size: int
    eager: bool
    second_runner: bool
    pooling: bool
    kv_cache_memory_bytes: int | None  # --kv-cache-memory-bytes, which overrides the utilization
    graphs_budgeted: bool


def default_utilization(vllm_version: str) -> float:
    """gpu-memory-utilization where none is given (vllm/config/cache.py)."""
    return 0.92 if release(vllm_version) >= _HIGHER_SHARE_SINCE else 0.9


def settings_for(model: ModelFacts, spec: EngineSpec, first: Gpu | None, vllm_version: str = NEWEST_KNOWN) -> Settings:
    """The settings of this spec; unset ones as that vLLM fills them in from `first`, the card of rank 0."""
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
    second_runner = _second_runner(model, spec, environment) and not pooling
    return Settings(
        utilization=default_utilization(vllm_version)
        if options.gpu_memory_utilization is None
        else options.gpu_memory_utilization,
        max_model_len=length,
        max_num_batched_tokens=tokens,
        max_num_seqs=seqs,
        dtype_bytes=dtype_bytes,
        kv_cache_bytes=kv_cache_bytes,
        block_size=extra_whole(options.extra, "--block-size") or block,
        eager=options.enforce_eager,
        second_runner=second_runner,
        pooling=pooling,
        kv_cache_memory_bytes=extra_whole(options.extra, "--kv-cache-memory-bytes"),
        graphs_budgeted=not second_runner and environment.get("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS") != "0",
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


def _second_runner(model: ModelFacts, spec: EngineSpec, environment: dict[str, str]) -> bool:
    chosen = environment.get("VLLM_USE_V2_MODEL_RUNNER")
    if chosen in ("0", "1"):
        return chosen == "1"
    if extra_value(spec.options.extra, "--speculative-config") is not None:
        return False
    return model.architecture in _SECOND_RUNNER


def _dtype_bytes(dtype: str | None) -> int:
    # "auto" loads float32 checkpoints in a 16-bit type (vllm/config/model.py _resolve_auto_dtype).
    return 4 if dtype in ("float", "float32") else 2


def _kv_cache_type(model: ModelFacts, kv_cache_dtype: str | None, dtype_bytes: int) -> tuple[int, int]:
    """Bytes of an element of the KV cache, and the tokens of a block."""
    if kv_cache_dtype is None or not kv_cache_dtype.startswith("fp8"):
        return dtype_bytes, DEFAULT_BLOCK
    # FlashMLA, the backend for an fp8 latent cache, works in blocks of 64.
    return 1, 64 if model.mla is not None else DEFAULT_BLOCK
