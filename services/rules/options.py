"""Options that vLLM refuses by themselves, or together with the model."""

from collections.abc import Iterator

from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.extra import has_option
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.versions import release
from gpudeck.services.rules.architecture import LEAST_CAPABILITY
from gpudeck.services.rules.rule import ModelPlan, Rule
from gpudeck.services.text import printable

UTILIZATION = Rule(
    "utilization-range",
    Severity.ERROR,
    "A share of memory outside 0 to 1",
    "gpu-memory-utilization is the share of the card that vLLM may use.",
    "vllm/config/cache.py: GPU memory utilization must be less than or equal to 1.0",
)
BATCHED_TOKENS = Rule(
    "batched-tokens-length",
    Severity.ERROR,
    "Fewer batched tokens than one prompt may have",
    "Without chunked prefill a whole prompt must go through in one step.",
    "vllm/config/scheduler.py: max_num_batched_tokens is smaller than max_model_len",
)
BATCHED_SEQS = Rule(
    "batched-tokens-seqs",
    Severity.ERROR,
    "Fewer batched tokens than sequences",
    "Each running sequence computes at least one token a step.",
    "vllm/config/scheduler.py: max_num_batched_tokens must be greater than or equal to max_num_seqs",
)
KV_CACHE_DTYPE = Rule(
    "kv-cache-dtype-unknown",
    Severity.ERROR,
    "A KV cache type that vLLM does not know",
    "The option takes a fixed list of types; argparse ends with exit code 2.",
    "vllm/config/cache.py CacheDType",
)
DTYPE = Rule(
    "dtype-unknown",
    Severity.ERROR,
    "A dtype that vLLM does not know",
    "The option takes a fixed list of types; argparse ends with exit code 2.",
    "vllm/config/model.py ModelDType",
)
QUANTIZATION_UNKNOWN = Rule(
    "quantization-unknown",
    Severity.ERROR,
    "A quantization method that vLLM does not know",
    "The method must be one of vLLM's own or of an installed plugin.",
    "vllm/config/model.py _verify_quantization: Unknown quantization method",
)
QUANTIZATION_MISMATCH = Rule(
    "quantization-mismatch",
    Severity.ERROR,
    "A quantization other than the checkpoint's",
    "The method in config.json and the one asked for must be the same, or one vLLM's faster form of the other.",
    "vllm/config/model.py _verify_quantization: Quantization method specified in the model config does not match",
)
QUANTIZATION_DEPRECATED = Rule(
    "quantization-deprecated",
    Severity.ERROR,
    "A quantization method that is on its way out",
    "vLLM refuses these methods unless --allow-deprecated-quantization is given.",
    "vllm/config/model.py _verify_quantization; DEPRECATED_QUANTIZATION_METHODS (0.32)",
)
RULES = (
    QUANTIZATION_DEPRECATED,
    UTILIZATION,
    BATCHED_TOKENS,
    BATCHED_SEQS,
    KV_CACHE_DTYPE,
    DTYPE,
    QUANTIZATION_UNKNOWN,
    QUANTIZATION_MISMATCH,
)
_DTYPES = ("auto", "half", "float16", "bfloat16", "float", "float32")
KV_CACHE_DTYPES = (
    "auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla", "nvfp4", "nvfp4_4over6",
    "nvfp4_ds_mla", "int4_per_token_head", "int8_per_token_head", "fp8_per_token_head", "turboquant_k8v4",
    "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc", "ultraquant_4bit",
)  # fmt: skip
_DEPRECATED = ("fbgemm_fp8", "fp_quant")
_DEPRECATED_KNOWN = (0, 32, 0)  # the version that was read; older ones are not refused by this rule
_PLUGINS = ("gguf", "bitsandbytes")


def check(judged: ModelPlan) -> Iterator[Finding]:
    options = judged.plan.spec.options
    utilization = options.gpu_memory_utilization
    if utilization is not None and not 0 < utilization <= 1:
        yield UTILIZATION.finding(
            f"gpu-memory-utilization is a share of the card above 0 and up to 1, not {utilization:g}.",
            "Use --gpu-memory-utilization 0.9.",
            options_change(gpu_memory_utilization=0.9),
        )
    yield from _scheduler(judged)
    if options.kv_cache_dtype is not None and options.kv_cache_dtype not in KV_CACHE_DTYPES:
        yield KV_CACHE_DTYPE.finding(
            f"{printable(options.kv_cache_dtype[:40])!r} is no type of KV cache that vLLM knows.",
            f"Use one of {', '.join(KV_CACHE_DTYPES)}.",
            options_change(kv_cache_dtype=None),
        )
    if options.dtype is not None and options.dtype not in _DTYPES:
        yield DTYPE.finding(
            f"{printable(options.dtype[:40])!r} is no dtype that vLLM knows.",
            f"Use one of {', '.join(_DTYPES)}.",
            options_change(dtype=None),
        )
    yield from _quantization(judged)


def _scheduler(judged: ModelPlan) -> Iterator[Finding]:
    options, memory = judged.plan.spec.options, judged.memory
    if memory is None:
        return
    tokens, seqs = memory.settings.max_num_batched_tokens, memory.settings.max_num_seqs
    length = memory.plan.max_model_len
    if has_option(options.extra, "--no-enable-chunked-prefill") and tokens < length and options.max_num_batched_tokens:
        yield BATCHED_TOKENS.finding(
            f"max_num_batched_tokens ({tokens:,}) is smaller than max_model_len ({length:,}), and chunked prefill is "
            "off.",
            f"Use --max-num-batched-tokens {length}, or leave chunked prefill on.",
            options_change(max_num_batched_tokens=length),
        )
    if options.max_num_batched_tokens is not None and options.max_num_seqs is not None and tokens < seqs:
        yield BATCHED_SEQS.finding(
            f"max_num_batched_tokens ({tokens:,}) must be at least max_num_seqs ({seqs:,}).",
            f"Use --max-num-seqs {tokens}.",
            options_change(max_num_seqs=tokens),
        )


def _quantization(judged: ModelPlan) -> Iterator[Finding]:
    asked, stored = judged.plan.spec.options.quantization, judged.model.quantization
    extra, option = judged.plan.spec.options.extra, "--allow-deprecated-quantization"
    current = release(judged.plan.around.vllm_version) >= _DEPRECATED_KNOWN
    if current and (asked or stored) in _DEPRECATED and not has_option(extra, option):
        yield QUANTIZATION_DEPRECATED.finding(
            f"The quantization method {asked or stored} is deprecated, and vLLM refuses it.",
            f"Use another checkpoint, or pass {option} while it is there.",
            options_change(extra=(*extra, option)),
        )
    if asked is None:
        return
    if asked not in LEAST_CAPABILITY and asked not in _PLUGINS:
        yield QUANTIZATION_UNKNOWN.finding(
            f"Unknown quantization method: {printable(asked[:40])}.",
            "Leave --quantization out: the model says its own.",
            options_change(quantization=None),
        )
    elif stored is not None and stored != "gguf" and _bare(asked) != _bare(stored):
        yield QUANTIZATION_MISMATCH.finding(
            f"The model is quantized with {stored}, and --quantization asks for {asked}.",
            "Leave --quantization out: the model says its own.",
            options_change(quantization=None),
        )


def _bare(method: str) -> str:
    """The method without what names only vLLM's own kernel for it."""
    for decoration in ("auto_", "gpt_oss_"):
        method = method.removeprefix(decoration)
    return method.removesuffix("_marlin")
