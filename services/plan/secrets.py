"""What only the engine may know: which variables and options hold such a thing, and the values on their way to it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.extra import options_in, without_options
from gpudeck.services.plan.types import EngineSpec

API_KEY = "VLLM_API_KEY"  # vllm/envs.py; --api-key wins over it
HF_TOKEN = "HF_TOKEN"  # noqa: S105 - a name; huggingface_hub/constants.py

_VARIABLE = re.compile(r"(?:^|_)(?:API_?KEYS?|ACCESS_KEY|TOKEN|SECRET|SECRET_KEY|PASSWORD)\Z", re.IGNORECASE)
_LONGEST = 4096  # characters; no key comes near it, and a wrong file does
# vLLM's parser takes each option's beginnings too, as far as no other option begins so.
_OPTIONS = {"--api-k": API_KEY, "--hf-t": HF_TOKEN}
_TOLD = re.compile(
    r"(?:--(?:api[-_]k|hf[-_]t)[a-z-_]*[ =]\s*|(?:API_?KEYS?|ACCESS_KEY|TOKEN|SECRET|SECRET_KEY|PASSWORD)=)"
    r"""("[^"\n]*"|'[^'\n]*'|[^\s"']+)""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Secrets:
    """Variables and their values; an empty value takes the variable away.  Its repr tells the names alone."""

    values: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(name for name, _value in self.values))

    def __bool__(self) -> bool:
        return bool(self.values)

    @property
    def sets_key(self) -> bool:
        return any(name == API_KEY and value for name, value in self.values)


def checked_secret(name: str, value: str) -> str:
    """The value without the line end that files have.  Raises OperatorError, which never tells the value."""
    value = value.strip()
    if not value:
        raise OperatorError(f"The value for {name} is empty: give a key, or leave the option out.")
    if len(value) > _LONGEST:
        raise OperatorError(f"The value for {name} is longer than {_LONGEST:,} characters: is it another file?")
    if not value.isascii() or not value.isprintable() or " " in value:
        raise OperatorError(
            f"The value for {name} is more than one word of printable ASCII, which no HTTP header can carry: "
            "give the key alone."
        )
    return value


def is_secret(variable: str) -> bool:
    """Whether a variable of that name holds what nobody else may read: HF_TOKEN, AWS_SECRET_ACCESS_KEY …"""
    return _VARIABLE.search(variable) is not None


def secret_variable(option: str) -> str | None:
    """The variable that stands in for an option whose value nobody else may read; None for other options."""
    return next((variable for beginning, variable in _OPTIONS.items() if option.startswith(beginning)), None)


def masked(text: str) -> str:
    """A unit's or command's text without the keys and tokens in it, each wherever it stands."""
    for secret in {word.strip("\"'") for word in _TOLD.findall(text)} - {""}:
        text = text.replace(secret, "***")
    return text


def secret_options(words: Sequence[str]) -> dict[str, str]:
    """The variables that stand in for the options of a command that hold a key or token, with their values."""
    found = {}
    for option, value in options_in(words):
        variable = secret_variable(option)
        if variable is not None and value:
            found[variable] = value
    return found


def secrets_of(spec: EngineSpec) -> Secrets:
    """The keys and tokens that a spec of someone else's unit holds; an option wins over its variable, as in vLLM."""
    found = {name: value for name, value in spec.environment if is_secret(name) and value}
    return Secrets(tuple((found | secret_options(spec.options.extra)).items()))


def without_secrets(spec: EngineSpec) -> EngineSpec:
    """The spec as it may be shown."""
    given = {option for option, _value in options_in(spec.options.extra) if secret_variable(option)}
    return replace(
        spec,
        environment=tuple(pair for pair in spec.environment if not is_secret(pair[0])),
        options=replace(spec.options, extra=without_options(spec.options.extra, given)),
    )


def refuse_exposed(words: Sequence[str], variables: Mapping[str, str] | Collection[str], secrets_file: str) -> None:
    """Raise OperatorError for a key or token on a command line, or among variables that everyone may read."""
    way_out = f"give it by --api-key-file, or put it into {secrets_file} (mode 0600) as"
    for name in variables:
        if is_secret(name):
            way_out = way_out.replace("--api-key-file", "--hf-token-file") if name == HF_TOKEN else way_out
            raise OperatorError(f"{name} would stand in the unit for everyone to read: {way_out} {name}=… instead.")
    for option, value in options_in(words):
        variable = secret_variable(option)
        if variable is not None and value:
            way_out = way_out.replace("--api-key-file", "--hf-token-file") if variable == HF_TOKEN else way_out
            raise OperatorError(
                f"{option} would stand on the command line for everyone to read: {way_out} {variable}=… instead."
            )
