"""Whether names and tokenizer are the model's own."""

import re
from collections.abc import Iterator

from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.changes import options_change
from gpudeck.services.plan.extra import without_options
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.rules.rule import ModelPlan, Rule
from gpudeck.services.text import printable

SERVED_NAME = Rule(
    "served-name-belies",
    Severity.WARNING,
    "A served name that belies the model",
    "Clients choose by the name and bill, prompt and trust accordingly; vLLM serves under any name that it is given.",
    "vllm serve --help: --served-model-name",
)
TOKENIZER = Rule(
    "tokenizer-other-model",
    Severity.WARNING,
    "A tokenizer of another model",
    "The tokenizer decides what each token number means: with another model's the answers are noise, and numbers "
    "beyond the embedding are refused request by request.",
    "vllm/config/model.py tokenizer; vllm: Token id is out of vocabulary",
)
RULES = (SERVED_NAME, TOKENIZER)
_SIZE = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,2})?)b(?![a-z0-9])")
_FAMILIES = ("llama", "qwen", "mistral", "mixtral", "gemma", "phi", "deepseek", "falcon", "gpt-oss", "granite")
_FAR = 1.7  # two sizes of one family differ by more; a rounded name and its model by less
_PADDING = 0.85  # an embedding is padded by less than that share of its rows


def check(judged: ModelPlan) -> Iterator[Finding]:
    yield from _served_name(judged)
    yield from _tokenizer(judged)


def _served_name(judged: ModelPlan) -> Iterator[Finding]:
    served = judged.plan.spec.options.served_model_name
    if not served:
        return
    contradiction = _contradicts(served.lower(), judged.model)
    if contradiction is not None:
        yield SERVED_NAME.finding(
            f"The model would be served as {printable(served[:80])}, but {contradiction}.",
            "Leave --served-model-name out, or give it a name that says what it is.",
            options_change(served_model_name=None),
        )


def _contradicts(served: str, model: ModelFacts) -> str | None:
    """What the name says and the model is not; a name that says nothing, or what the model's own says, is no lie."""
    named = "/".join(model.path.rstrip("/").split("/")[-2:])  # a hub id, or a directory in its folder
    own = f"{model.name} {named} {model.model_type} {model.architecture}".lower()
    sizes = [float(size) for size in _SIZE.findall(served)]
    own_sizes = {float(size) for size in _SIZE.findall(own)}
    # Names of mixtures count experts or active parameters, each in its own way.
    if len(sizes) == 1 and model.experts is None and model.parameters and sizes[0] not in own_sizes:
        told, real = sizes[0] * 1e9, float(model.parameters)
        if told > 0 and max(told / real, real / told) > _FAR:
            return f"it has {real / 1e9:.1f} billion parameters"
    families = [family for family in _FAMILIES if family in served]
    own_families = [family for family in _FAMILIES if family in own]
    if families and own_families and not set(families) & set(own_families):
        return f"it is a {own_families[0]} ({printable(model.name[:60])})"
    return None


def _tokenizer(judged: ModelPlan) -> Iterator[Finding]:
    tokens, rows = judged.plan.around.tokenizer_tokens, judged.model.vocab_size
    if tokens is None or _PADDING * rows <= tokens <= rows:
        return
    yield TOKENIZER.finding(
        f"The tokenizer of --tokenizer has {tokens:,} tokens, and the model's vocabulary {rows:,}.",
        "Leave --tokenizer out, or give the model's own.",
        options_change(extra=without_options(judged.plan.spec.options.extra, {"--tokenizer"})),
    )
