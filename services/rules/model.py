"""The model itself: what is assumed of it, and its form."""

from collections.abc import Iterator

from gpudeck.services.plan.findings import Finding, Severity
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
RULES = (GUESSES, GGUF, BITSANDBYTES, WITHOUT_WEIGHTS)


def check(judged: ModelPlan) -> Iterator[Finding]:
    model = judged.model
    method = judged.plan.spec.options.quantization or model.quantization
    if method == "gguf":
        yield GGUF.finding(
            "The model is a .gguf file, which vLLM reads only with the vllm-gguf-plugin.",
            "Install vllm-gguf-plugin beside vLLM, or use the model's safetensors.",
        )
    elif method == "bitsandbytes":
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
