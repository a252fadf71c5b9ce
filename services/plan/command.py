"""The command line and the environment that an engine spec stands for."""

from dataclasses import replace

from gpudeck.services.plan.extra import has_option
from gpudeck.services.plan.types import EngineOptions, EngineSpec
from gpudeck.services.plan.versions import release

# What gpudeck and others that watch an engine ask for again and again; each answer would be a line in its log.
LOOKED_AT = ("/health", "/metrics", "/v1/models")
_ACCESS_LOG = ("--disable-access-log-for-endpoints", "--disable-uvicorn-access-log")
_QUIET_SINCE = "0.16"  # vllm#30011


def can_be_quiet(version: str) -> bool:
    """Whether that vLLM can leave single addresses out of its access log."""
    return release(version) >= release(_QUIET_SINCE)


def keeps_quiet(spec: EngineSpec) -> bool:
    """Whether looking at the engine again and again leaves no line in its log."""
    return spec.quiet or any(has_option(spec.options.extra, option) for option in _ACCESS_LOG)


def argv(spec: EngineSpec) -> tuple[str, ...]:
    """The whole command, word by word: program, `serve`, model, then options under vLLM's own long names.

    An option that is None is left out, and so is a parallel size of 1: vLLM's defaults then hold.
    """
    placement = spec.placement
    words = [*spec.program, "serve", spec.model]
    for option, size in (
        ("--tensor-parallel-size", placement.tensor_parallel_size),
        ("--pipeline-parallel-size", placement.pipeline_parallel_size),
        ("--data-parallel-size", placement.replicas),
    ):
        if size > 1:
            words += [option, str(size)]
    words += option_words(replace(spec.options, extra=()))
    if spec.quiet and not any(has_option(spec.options.extra, option) for option in _ACCESS_LOG):
        words += [_ACCESS_LOG[0], ",".join(LOOKED_AT)]
    return (*words, *spec.options.extra)


def option_words(options: EngineOptions) -> list[str]:
    """The options' part of the command, those that gpudeck does not know last and as they were given."""
    words: list[str] = []
    for option, value in (
        ("--host", options.host),
        ("--port", options.port),
        ("--served-model-name", options.served_model_name),
        ("--max-model-len", options.max_model_len),
        ("--gpu-memory-utilization", options.gpu_memory_utilization),
        ("--max-num-seqs", options.max_num_seqs),
        ("--max-num-batched-tokens", options.max_num_batched_tokens),
        ("--kv-cache-dtype", options.kv_cache_dtype),
        ("--quantization", options.quantization),
        ("--dtype", options.dtype),
        ("--load-format", options.load_format),
    ):
        if value is not None:
            words += [option, str(value)]
    if options.enforce_eager:
        words.append("--enforce-eager")
    words += options.extra
    return words


def environment(spec: EngineSpec) -> dict[str, str]:
    """The variables that the engine is started with, in a fixed order; the spec's own come last and win.

    CUDA_VISIBLE_DEVICES carries the placement: vLLM gives rank r the r-th entry, so a TP group is a run of TP entries
    (vllm/distributed/parallel_state.py).  The entries are NVML's indices, and CUDA counts as NVML does only under
    CUDA_DEVICE_ORDER=PCI_BUS_ID; its own order, fastest card first, would put ranks on other cards (vllm#53834).
    """
    variables = {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(str(gpu) for gpu in spec.placement.gpus),
    }
    if spec.layer_partition is not None:
        variables["VLLM_PP_LAYER_PARTITION"] = ",".join(str(layers) for layers in spec.layer_partition)
    # Python holds back what it prints into a pipe, and the last words before a crash would be lost.
    variables["PYTHONUNBUFFERED"] = "1"
    variables.update(spec.environment)
    return variables
