"""What is wrong with a hand-written unit, and the spec that mends it; pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gpudeck.services.adoption.container import EVERYWHERE
from gpudeck.services.adoption.types import Adopted, Review
from gpudeck.services.box.types import Box
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.changes import apply, options_change
from gpudeck.services.plan.extra import extra_value, has_option, without_options
from gpudeck.services.plan.findings import Finding, Severity
from gpudeck.services.plan.secrets import is_secret
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.plan.versions import NEWEST_KNOWN, release
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings
from gpudeck.services.text import printable

# Changes that a corrected unit makes by itself: each takes out what does harm or nothing, and keeps what was meant.
_MENDED = (
    "api-key-shown", "option-removed", "option-deprecated", "option-form", "environment-gone", "served-name-belies",
    "tokenizer-other-model",
)  # fmt: skip
_MOST_CHANGES = 64
_SIZE = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,2})?)b(?![a-z0-9])")
_BITS = re.compile(r"(?<![a-z0-9])q(\d)(?=_|\b)")
_PLUGIN_SINCE = (0, 24, 0)


@dataclass(frozen=True, slots=True)
class Ground:
    """What a unit is judged on: the box, the model where it can be read here, and what stands around it."""

    box: Box | None = None
    model: ModelFacts | None = None
    around: Surroundings = field(default_factory=Surroundings)


def review(adopted: Adopted, ground: Ground | None = None) -> Review:
    """Findings, worst first, and the corrected spec; a container's unit is judged and not rewritten."""
    ground = ground or Ground()
    findings = _findings(adopted, adopted.spec, ground)
    if adopted.container is not None or not adopted.spec.model or not adopted.spec.placement.gpus:
        return Review(adopted, findings, None)
    return Review(adopted, findings, _corrected(adopted, ground))


def _corrected(adopted: Adopted, ground: Ground) -> EngineSpec:
    kept = tuple(pair for pair in adopted.spec.environment if not is_secret(pair[0]))
    spec = replace(adopted.spec, environment=kept)
    for _ in range(_MOST_CHANGES):
        # Each change is made of the whole spec: the next one is asked for after it.
        found = next((each for each in _findings(adopted, spec, ground) if each.rule in _MENDED and each.change), None)
        changed = apply(found.change, spec) if found is not None and found.change is not None else spec
        if changed == spec:
            break
        spec = changed
    return spec


def _findings(adopted: Adopted, spec: EngineSpec, ground: Ground) -> tuple[Finding, ...]:
    found = list(_own(adopted, spec, ground))
    around = replace(
        ground.around,
        vllm_version=adopted.version or ground.around.vllm_version,
        version_told=adopted.version is not None or ground.around.version_told,
        # A file that could not be read may hold the key: nothing is claimed about it.
        key_set=ground.around.key_set or bool(adopted.missing_files) or adopted.container is not None,
    )
    box = ground.box or Box(())
    told = judge(box, ground.model, spec, around=around).findings
    if ground.box is None:
        told = tuple(each for each in told if each.rule not in ("gpu-missing", "world-size"))
    rules = {each.rule for each in found}
    found += [each for each in told if each.rule not in rules]
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
    return tuple(sorted(found, key=lambda each: order[each.severity]))


def _own(adopted: Adopted, spec: EngineSpec, ground: Ground) -> Iterator[Finding]:
    """What only a hand-written unit can have."""
    yield from _ranks(adopted, ground)
    if adopted.container is None and adopted.user in (None, "root", "0"):
        yield Finding(
            "runs-as-root",
            Severity.WARNING,
            "The engine runs as root.",
            "Give it a user of its own: User= in the unit.",
        )
    if spec.options.host in (EVERYWHERE, "::", "") and has_option(spec.options.extra, "--api-key"):
        yield Finding(
            "open-to-network",
            Severity.WARNING,
            "The engine listens on all addresses; its key guards /v1 only.",
            "Use --host 127.0.0.1, or keep the port behind a firewall.",
            options_change(host="127.0.0.1"),
        )
    if not adopted.ordered and adopted.cards:
        names = {gpu.name for gpu in ground.box.gpus} if ground.box else set()
        yield Finding(
            "card-order",
            Severity.WARNING if len(names) > 1 else Severity.INFO,
            "Without CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA counts the fastest card first, and other cards than meant may "
            "run.",
            "Set CUDA_DEVICE_ORDER=PCI_BUS_ID.",
        )
    if adopted.old_entry_point:
        yield Finding(
            "old-entry-point",
            Severity.INFO,
            "python -m vllm.entrypoints.openai.api_server is the old entry point.",
            "Use `vllm serve`.",
        )
    for path in adopted.missing_files:
        yield Finding(
            "environment-unread",
            Severity.INFO,
            f"The environment file {printable(path)} can not be read here: what it sets is not known.",
            "Run this as a user that may read it.",
        )
    if adopted.container is not None:
        yield Finding(
            "in-container",
            Severity.INFO,
            f"The engine runs in a container of {printable(adopted.container.image)}: it is shown and started as the "
            "service that it is, and its unit is left as it stands.",
        )
    if ground.model is None:
        yield from _by_name(adopted, spec, ground)


def _ranks(adopted: Adopted, ground: Ground) -> Iterator[Finding]:
    cards = adopted.cards
    if cards is None and ground.box is not None:
        cards = tuple(gpu.index for gpu in ground.box.gpus)
    if cards is None or adopted.world_size <= len(cards):
        return
    shape = f"TP {adopted.tensor_parallel_size} × PP {adopted.pipeline_parallel_size}"
    if adopted.replicas > 1:
        shape += f" × {adopted.replicas} copies"
    shown = ", ".join(map(str, cards)) or "none"
    yield Finding(
        "world-size",
        Severity.ERROR,
        f"{shape} asks for {adopted.world_size} cards, and the engine sees {len(cards)} ({shown}).",
        "Show it more cards in CUDA_VISIBLE_DEVICES, or lower TP × PP.",
    )


def _by_name(adopted: Adopted, spec: EngineSpec, ground: Ground) -> Iterator[Finding]:
    """Of a model that can not be read here, what its name tells."""
    model = spec.model.lower()
    served, tokenizer = spec.options.served_model_name, extra_value(spec.options.extra, "--tokenizer")
    if served and (lie := _belies(served.lower(), model)):
        yield Finding(
            "served-name-belies",
            Severity.WARNING,
            f"The model would be served as {printable(served[:80])}, but its file says {lie}.",
            "Leave --served-model-name out, or give it a name that says what it is.",
            options_change(served_model_name=None),
        )
    if tokenizer and (lie := _belies(tokenizer.lower(), model)):
        yield Finding(
            "tokenizer-other-model",
            Severity.WARNING,
            f"The tokenizer {printable(tokenizer[-80:])} is another model's: the model says {lie}.",
            "Leave --tokenizer out, or give the model's own.",
            options_change(extra=without_options(spec.options.extra, {"--tokenizer"})),
        )
    version = adopted.version or ground.around.vllm_version or NEWEST_KNOWN
    if model.endswith(".gguf") and release(version) >= _PLUGIN_SINCE:
        yield Finding(
            "gguf-plugin",
            Severity.WARNING,
            f"vLLM {version} reads .gguf files only with the package vllm-gguf-plugin.",
            "Install vllm-gguf-plugin into the engine's environment.",
        )


def _belies(told: str, model: str) -> str:
    """What the model's own name says of its size or its bits, where `told` says something else; "" else."""
    for pattern, words in ((_SIZE, "{}b"), (_BITS, "q{}")):
        claimed, real = set(pattern.findall(told)), set(pattern.findall(model))
        if claimed and real and not claimed & real:
            return words.format(sorted(real)[0])
    return ""
