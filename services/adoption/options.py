"""The arguments of `vllm serve` (or of the old entry point) read back into options."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from gpudeck.services.adoption.container import EVERYWHERE
from gpudeck.services.plan.extra import option_name
from gpudeck.services.plan.types import EngineOptions

_SHORT = {"-tp": "--tensor-parallel-size", "-pp": "--pipeline-parallel-size", "-dp": "--data-parallel-size"}
_SHORT |= {"-q": "--quantization"}
_SIZES = ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")
# Flags that people give before the model; a word behind any other unknown option is its value.
_FLAGS = (
    "--trust-remote-code", "--enable-prefix-caching", "--no-enable-prefix-caching", "--enable-auto-tool-choice",
    "--disable-log-requests", "--disable-log-stats", "--language-model-only", "--enable-lora", "--enable-reasoning",
    "--enable-chunked-prefill", "--disable-custom-all-reduce", "--enforce-eager", "--async-scheduling",
    "--enable-expert-parallel",
)  # fmt: skip
_OWN = {f"--{field.name.replace('_', '-')}": field.name for field in fields(EngineOptions) if field.name != "extra"}
_WHOLE = ("port", "max_model_len", "max_num_seqs", "max_num_batched_tokens")
_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True)
class Asked:
    model: str
    sizes: tuple[int, int, int]  # TP, PP, DP
    options: EngineOptions


def read_arguments(words: Sequence[str]) -> Asked:
    """`host` is vLLM's default, all addresses, where none is given.  What can not be read stays among `extra`."""
    model, sizes = "", dict.fromkeys(_SIZES, 1)
    known: dict[str, object] = {"host": EVERYWHERE}
    extra: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name = option_name(word)
        if not name:
            if model:
                extra.append(word)
            else:
                model = word
            continue
        name = _SHORT.get(name, name)
        given = [word]
        value: str | None = None
        if "=" in word:
            value = word.split("=", 1)[1]
        elif rest and not option_name(rest[0]) and name not in _FLAGS:
            value = rest.pop(0)
            given.append(value)
        if name == "--model" and value is not None:
            model = value
        elif name in sizes and value is not None and value.isdecimal() and 0 < int(value[:6]) < 10**5:
            sizes[name] = int(value[:6])
        elif name == "--enforce-eager":
            known["enforce_eager"] = True
        elif name in _OWN and value is not None and (read := _read(_OWN[name], value)) is not None:
            known[_OWN[name]] = read
        else:
            extra += given
    tp, pp, dp = (sizes[name] for name in _SIZES)
    return Asked(model, (tp, pp, dp), EngineOptions(**known, extra=tuple(extra)))  # type: ignore[arg-type]


def _read(field: str, value: str) -> object | None:
    if field in _WHOLE:
        unit = _UNITS.get(value[-1:], 1)
        digits = value[:-1] if unit > 1 else value
        return int(digits) * unit if digits.isdecimal() and digits.isascii() and len(digits) < 12 else None
    if field == "gpu_memory_utilization":
        try:
            return float(value)
        except ValueError:
            return None
    return value
