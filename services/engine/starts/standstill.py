"""What to check where a start stands still: five things, each with whether it holds on this box.

They are what vLLM's own users find first: a model or tokenizer that is not where the command says, memory that others
have, and the two settings that decide how much of it is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpudeck.services.box.types import GIB, Snapshot
from gpudeck.services.engine.starts.collisions import used_by_others
from gpudeck.services.errors import OperatorError
from gpudeck.services.memory.settings import settings_for
from gpudeck.services.models.hub_cache import cache_root, is_hub_id, snapshot
from gpudeck.services.models.read import read_model
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.extra import extra_value
from gpudeck.services.plan.findings import Finding, Judgement, Severity
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings

_TOKENIZERS = (
    "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "tekken.json", "spiece.model",
    "sentencepiece.bpe.model", "tiktoken.model", "tokenizer_config.json",
)  # fmt: skip
_MEMORY = ("weights-fit", "kv-cache-room", "gpu-occupied", "beside-budget", "kv-cache-memory-bytes")
_LENGTH = ("max-model-len-kv", "max-model-len-model")
_SEQS = ("batched-tokens-seqs",)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.  `holds` is None where it can not be told here; `found` may be foreign text."""

    what: str
    holds: bool | None
    found: str


def five_checks(spec: EngineSpec, seen: Snapshot | None, vllm_version: str) -> tuple[Check, ...]:
    """Model path, tokenizer path, memory, max-model-len and max-num-seqs.  Reads the model's files; blocks."""
    model: ModelFacts | None = None
    environment = dict(spec.environment)
    try:
        model = read_model(spec.model, environment)
    except OperatorError as error:
        path = Check("model path", False, str(error))
    else:
        path = Check("model path", True, f"{spec.model} is there and can be read.")
    judgement = None
    if seen is not None and model is not None and spec.placement.gpus:
        around = Surroundings(vllm_version=vllm_version)
        judgement = judge(seen.box, model, spec, used=used_by_others(seen, spec.name), around=around)
    return (
        path,
        _tokenizer(spec, model, environment),
        _memory(spec, judgement, seen),
        _length(spec, judgement),
        _seqs(spec, model, judgement, seen, vllm_version),
    )


def check_words(check: Check) -> str:
    """`holds: model path. /models/x is there and can be read.`"""
    word = {True: "holds", False: "does not hold", None: "not known"}[check.holds]
    return f"{word}: {check.what}. {check.found}"


def _tokenizer(spec: EngineSpec, model: ModelFacts | None, environment: dict[str, str]) -> Check:
    what, given = "tokenizer path", extra_value(spec.options.extra, "--tokenizer")
    path = given or (model.path if model is not None else spec.model)
    if given is None and path.endswith(".gguf"):
        return Check(what, True, "A .gguf file holds its own tokenizer.")
    try:
        folder: Path | None = Path(path).expanduser()
        if folder is not None and not folder.is_dir():
            folder = snapshot(path, cache_root(environment)) if is_hub_id(path) else None
        there = [name for name in _TOKENIZERS if folder is not None and (folder / name).exists()]
    except (OSError, ValueError, RuntimeError):
        folder, there = None, []
    if folder is None:
        return Check(what, False, f"{path} is neither here nor in the Hugging Face cache: correct the path.")
    if not there:
        return Check(what, False, f"{folder} holds no tokenizer (tokenizer.json …): give one with --tokenizer.")
    return Check(what, True, f"{folder / there[0]} is there.")


def _memory(spec: EngineSpec, judgement: Judgement | None, seen: Snapshot | None) -> Check:
    if judgement is None or judgement.memory is None:
        why = "The cards can not be read here." if seen is None else "What the model takes can not be told here."
        return Check("memory", None, why)
    if found := _worst(judgement, _MEMORY):
        return Check("memory", False, _sentence(found))
    cards = [judgement.memory.gpu(gpu) for gpu in dict.fromkeys(spec.placement.gpus)]
    room = ", ".join(f"{card.free / GIB:.1f} GiB of GPU {card.gpu}" for card in cards if card is not None)
    return Check("memory", True, f"It fits beside what others hold, and leaves {room} free.")


def _length(spec: EngineSpec, judgement: Judgement | None) -> Check:
    what = "max-model-len"
    if judgement is None or judgement.memory is None:
        given = spec.options.max_model_len
        return Check(what, None, f"{given:,} is asked for." if given else "It is left to vLLM.")
    if found := _worst(judgement, _LENGTH):
        return Check(what, False, _sentence(found))
    memory = judgement.memory
    return Check(what, True, f"{memory.max_model_len:,} tokens; the KV cache would hold {memory.kv_cache_tokens:,}.")


def _seqs(
    spec: EngineSpec, model: ModelFacts | None, judgement: Judgement | None, seen: Snapshot | None, version: str
) -> Check:
    what = "max-num-seqs"
    if judgement is None or judgement.memory is None or model is None or seen is None:
        given = spec.options.max_num_seqs
        return Check(what, None, f"{given:,} is asked for." if given else "It is left to vLLM.")
    if found := _worst(judgement, _SEQS):
        return Check(what, False, _sentence(found))
    seqs = settings_for(model, spec, seen.box.gpu(spec.placement.gpus[0]), version).max_num_seqs
    rows = seqs * model.vocab_size * 4  # the logits of one step, in float32
    whose = "" if spec.options.max_num_seqs else ", vLLM's own"
    holds = None if _worst(judgement, _MEMORY) else True
    return Check(what, holds, f"{seqs:,}{whose}: warming up its sampler takes {rows / GIB:.1f} GiB or more.")


def _worst(judgement: Judgement, rules: Sequence[str]) -> Finding | None:
    errors = (found for found in judgement.findings if found.severity is Severity.ERROR)
    return next((found for found in errors if found.rule in rules), None)


def _sentence(found: Finding) -> str:
    return f"{found.message} {found.fix or ''}".rstrip()
