"""The fields of the options form: vLLM's own names, one line of help each, and what may stand in them.  Pure."""

import dataclasses
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.naming import checked_name, is_account
from gpudeck.services.plan.secrets import API_KEY, HF_TOKEN, Secrets, checked_secret, secret_options
from gpudeck.services.plan.types import EngineOptions

# vLLM's own suffixes for whole numbers: a small letter counts in thousands, a capital in powers of 1,024.
_SUFFIXES = {"": 1, "k": 10**3, "K": 1 << 10, "m": 10**6, "M": 1 << 20}
_WHOLE = re.compile(r"(\d{1,15})([kKmM]?)")
_HOST = re.compile(r"[0-9A-Za-z._:\-\[\]]{1,253}")
_WORD = re.compile(r"[0-9A-Za-z_.\-]{1,64}")


class FieldError(OperatorError):
    """What stands in a field can not stand there; the sentence is shown beside it."""


@dataclass(frozen=True, slots=True)
class OptionField:
    """One line of the form.  `attribute` is EngineOptions' (or "name"), `default` what vLLM does where it is empty."""

    attribute: str
    label: str
    help: str
    default: str
    parse: Callable[[str], Any]
    flag: bool = False
    secret: bool = False  # what is typed is not shown


@dataclass(frozen=True, slots=True)
class NamedOptions:
    """What the form gives back."""

    name: str
    options: EngineOptions
    user: str | None = None
    secrets: Secrets = dataclasses.field(default_factory=Secrets)


def _whole(label: str, least: int, most: int, example: str) -> Callable[[str], int | None]:
    def parse(text: str) -> int | None:
        if not text:
            return None
        match = _WHOLE.fullmatch(text.replace(",", "").replace("_", ""))
        value = int(match.group(1)) * _SUFFIXES[match.group(2)] if match else None
        if value is None or not least <= value <= most:
            raise FieldError(f"{label} takes a whole number from {least:,} to {most:,}, like {example}.")
        return value

    return parse


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:6]) <= 65535:
        raise FieldError("--port takes a number from 1 to 65535, like 8000.")
    return int(text)


def _host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise FieldError("--host takes an address or a host name, like 127.0.0.1 (this box only) or 0.0.0.0 (all).")
    return text


def _share(text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= 1.0:
        raise FieldError("--gpu-memory-utilization takes a share above 0 and up to 1, like 0.92.")
    return value


def _word(label: str, example: str) -> Callable[[str], str | None]:
    def parse(text: str) -> str | None:
        if text and not _WORD.fullmatch(text):
            raise FieldError(f"{label} takes one word, like {example}.")
        return text or None

    return parse


def _served(text: str) -> str | None:
    if text and (not text.isprintable() or " " in text):
        raise FieldError("--served-model-name takes one name without blanks, like gemma.")
    return text or None


def _extra(text: str) -> tuple[str, ...]:
    if not text.isprintable():
        raise FieldError("An option holds a character that can not be printed: type it again.")
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise FieldError("A quotation mark is not closed: close it, or put a backslash before it.") from error
    if secret_options(words):
        raise FieldError("A key on the command line is there for everyone to read: it has a field of its own below.")
    if words and not words[0].startswith("-"):
        raise FieldError(f"Options begin with a dash: what is {words[0][:40]} for?")
    return words


def _account(text: str) -> str | None:
    if text and not is_account(text):
        raise FieldError("user takes the name of an account of this machine, like vllm.")
    return text or None


def _secret(name: str) -> Callable[[str], str | None]:
    return lambda text: checked_secret(name, text) if text else None


def _flag(text: str) -> bool:
    return text == "yes"


FIELDS: tuple[OptionField, ...] = (
    OptionField("name", "name", "what its unit is called by", "", checked_name),
    OptionField("host", "--host", "127.0.0.1: only this box; 0.0.0.0: all", "", _host),
    OptionField("port", "--port", "where it answers; one for each engine", "", _port),
    OptionField(
        "served_model_name", "--served-model-name", "the model's name in requests", "the model's path", _served
    ),
    OptionField(
        "max_model_len",
        "--max-model-len",
        "longest request and answer, in tokens",
        "the model's own",
        _whole("--max-model-len", 1, 100_000_000, "32768"),
    ),
    OptionField(
        "gpu_memory_utilization",
        "--gpu-memory-utilization",
        "share of each card that vLLM may fill",
        "vLLM's 0.92, in older versions 0.9",
        _share,
    ),
    OptionField(
        "max_num_seqs",
        "--max-num-seqs",
        "requests worked on at once",
        "vLLM's choice",
        _whole("--max-num-seqs", 1, 1_000_000, "64"),
    ),
    OptionField(
        "max_num_batched_tokens",
        "--max-num-batched-tokens",
        "tokens in one step of the engine",
        "vLLM's choice",
        _whole("--max-num-batched-tokens", 1, 100_000_000, "8192"),
    ),
    OptionField("dtype", "--dtype", "half for cards below 8.0, else bfloat16", "auto", _word("--dtype", "half")),
    OptionField(
        "kv_cache_dtype",
        "--kv-cache-dtype",
        "fp8 doubles the tokens that fit",
        "auto",
        _word("--kv-cache-dtype", "fp8"),
    ),
    OptionField(
        "quantization",
        "--quantization",
        "left empty, it is read from the model",
        "the model's own",
        _word("--quantization", "awq"),
    ),
    OptionField(
        "load_format", "--load-format", "dummy makes up weights, to try a plan", "auto", _word("--load-format", "dummy")
    ),
    OptionField("enforce_eager", "--enforce-eager", "no CUDA graphs: quick start, slow decode", "", _flag, flag=True),
    OptionField("extra", "others", "passed on to vLLM as they are", "none", _extra),
    OptionField(
        "api_key",
        "API key",
        "what requests must carry; kept in a file for the engine alone",
        "what its file holds",
        _secret(API_KEY),
        secret=True,
    ),
    OptionField(
        "hf_token",
        "HF token",
        "for models that the hub guards; kept in the same way",
        "what its file holds",
        _secret(HF_TOKEN),
        secret=True,
    ),
    OptionField("user", "user", "the account that its unit runs as", "root", _account),
)
_BESIDE = ("name", "user", "api_key", "hf_token")  # what EngineOptions does not hold


def texts_of(name: str, options: EngineOptions, user: str | None = None) -> dict[str, str]:
    """What stands in each field, by attribute, for these options; keys are never put into one."""
    texts = {}
    beside = {"name": name, "user": user}
    for field in FIELDS:
        attribute = field.attribute
        value: Any = beside.get(attribute) if attribute in _BESIDE else getattr(options, attribute)
        if field.flag:
            texts[field.attribute] = "yes" if value else ""
        elif field.attribute == "extra":
            texts[field.attribute] = shlex.join(value)
        else:
            texts[field.attribute] = "" if value is None else str(value)
    return texts


def read_field(field: OptionField, text: str, taken: Mapping[str, str]) -> Any:
    """The value of one field.  `taken` names what is used by other engines: "name:x" or "port:8000" → by whom.

    Raises OperatorError with the sentence that is shown beside the field.
    """
    value = field.parse(text.strip())
    other = taken.get(f"{field.attribute}:{value}")
    if other is not None:
        raise FieldError(f"{field.label} {value} is {other}'s already: choose another.")
    return value


def read_fields(texts: Mapping[str, str], taken: Mapping[str, str]) -> tuple[NamedOptions | None, dict[str, str]]:
    """The options that the texts name, or None and a sentence for each field that is wrong, by attribute."""
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for field in FIELDS:
        try:
            values[field.attribute] = read_field(field, texts.get(field.attribute, ""), taken)
        except OperatorError as error:
            errors[field.attribute] = str(error)
    if errors:
        return None, errors
    name, user, api_key, hf_token = (values.pop(attribute) for attribute in _BESIDE)
    given = tuple((name, value) for name, value in ((API_KEY, api_key), (HF_TOKEN, hf_token)) if value)
    return NamedOptions(name, EngineOptions(**values), user, Secrets(given)), {}
