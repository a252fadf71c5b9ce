"""The model itself: what is assumed of it, and its form."""

from collections.abc import Iterator

from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.extra import has_option
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.versions import release
from gpudeck.services.rules.parallel import one_card_a_stage
from gpudeck.services.rules.rule import ModelPlan, Rule
from gpudeck.services.text import printable

GUESSES = Rule(
    "model-guessed",
    Severity.INFO,
    "Figures that are assumed",
    "The model's family is unknown to gpudeck or its config is silent, so memory and parameters are estimates.",
    "gpudeck: services/models/families.py",
)
GGUF = Rule(
    "gguf-plugin",
    Severity.WARNING,
    "GGUF needs a plugin",
    "vLLM's own tree no longer reads .gguf files; from 0.24 on the package vllm-gguf-plugin does.",
    "vLLM 0.24 and later",
)
BITSANDBYTES = Rule(
    "bitsandbytes-plugin",
    Severity.WARNING,
    "bitsandbytes needs a plugin",
    "vLLM's own tree no longer holds bitsandbytes; after 0.27.1 the package vllm-bnb-plugin does.",
    "vLLM 0.28 and later",
)
WITHOUT_WEIGHTS = Rule(
    "model-without-weights",
    Severity.INFO,
    "A model without its weights",
    "The directory holds a config but no weights, so they are counted from the architecture; an engine needs them, or "
    "--load-format dummy.",
    "vllm/model_executor/model_loader/default_loader.py: Cannot find any model weights",
)
GGUF_TOKENIZER = Rule(
    "gguf-tokenizer",
    Severity.WARNING,
    "A .gguf file without its tokenizer",
    "Without --tokenizer the tokenizer is converted from the file, which takes minutes and does not always come out as "
    "the model's own.",
    "vLLM documentation, GGUF: use the tokenizer from the base model",
)
GGUF_FORMAT = Rule(
    "gguf-load-format",
    Severity.WARNING,
    "--load-format gguf",
    "vLLM's own loaders know no such format any more; the engine starts and its workers end.  The plugin finds a .gguf "
    "file by its ending.",
    "run on the CPU build of vLLM 0.32",
)
GGUF_SHARDS = Rule(
    "gguf-shards",
    Severity.WARNING,
    "GGUF blocks that do not divide by TP",
    "K-quants keep 256 weights of a row in one block, and a rank's shard must hold whole blocks.",
    "ggml-quants: QK_K = 256",
)
RULES = (GUESSES, GGUF, GGUF_TOKENIZER, GGUF_FORMAT, GGUF_SHARDS, BITSANDBYTES, WITHOUT_WEIGHTS)
_GGUF_PLUGIN_SINCE = (0, 24, 0)
_BNB_PLUGIN_SINCE = (0, 27, 2)
_GGUF_BLOCK = 256


def check(judged: ModelPlan) -> Iterator[Finding]:
    model = judged.model
    method = judged.plan.spec.options.quantization or model.quantization
    version = release(judged.plan.around.vllm_version)
    if method == "gguf":
        yield from _gguf(judged, version)
    elif method == "bitsandbytes" and version >= _BNB_PLUGIN_SINCE:
        yield BITSANDBYTES.finding(
            "bitsandbytes weights are read only with the vllm-bnb-plugin.",
            "Install vllm-bnb-plugin beside vLLM, or use an AWQ, GPTQ or fp8 checkpoint.",
        )
    if model.weight_bytes is None and judged.plan.spec.options.load_format != "dummy":
        yield WITHOUT_WEIGHTS.finding(
            f"{printable(model.path)} holds no weights: they are counted from the architecture.",
            "Download them before the engine is started, or try the plan with --load-format dummy.",
        )
    if model.guesses:
        yield GUESSES.finding(f"Some figures are assumed: {'; '.join(model.guesses)}.")


def _gguf(judged: ModelPlan, version: tuple[int, int, int]) -> Iterator[Finding]:
    options, ranks = judged.plan.spec.options, judged.plan.tensor_parallel
    if version >= _GGUF_PLUGIN_SINCE:
        yield GGUF.finding(
            "The model is a .gguf file, which vLLM reads only with the vllm-gguf-plugin.",
            "Install vllm-gguf-plugin beside vLLM, or use the model's safetensors.",
        )
    if not has_option(options.extra, "--tokenizer"):
        yield GGUF_TOKENIZER.finding(
            "No tokenizer is given for the .gguf file.",
            "Pass the base model's behind --: --tokenizer ORG/MODEL, or its directory.",
        )
    if options.load_format == "gguf" and version >= _GGUF_PLUGIN_SINCE:
        yield GGUF_FORMAT.finding(
            "--load-format gguf ends in the workers.", "Leave --load-format out.", options_change(load_format=None)
        )
    width = judged.model.intermediate_size
    if ranks > 1 and width % ranks == 0 and (width // ranks) % _GGUF_BLOCK:
        yield GGUF_SHARDS.finding(
            f"At TP {ranks} a rank's part of the MLP is {width // ranks} wide, no multiple of {_GGUF_BLOCK}.",
            "Use another tensor parallel size, or one card a stage.",
            one_card_a_stage(judged),
        )
