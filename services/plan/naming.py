"""Names of engines: short, and safe in a unit's file name on every systemd."""

import re
from collections.abc import Collection
from itertools import count

from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

MAX_NAME = 64  # a unit's file name may have 255 characters; a name longer than this can not be read on the screen
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")
_UNSAFE = re.compile(r"[^a-z0-9_.-]+")
_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,30}\Z")  # systemd's valid_user_group_name(), the strict form
# Endings that say what a file is, not what the model is called.
_ENDINGS = (".gguf", ".safetensors")


def valid_name(name: str) -> bool:
    """Whether `name` can be an engine's name: [a-z0-9][a-z0-9_.-]*, at most 64 characters."""
    return len(name) <= MAX_NAME and _NAME.match(name) is not None


def checked_name(name: str) -> str:
    """Return `name`, or raise OperatorError with a sentence that says what is wrong with it."""
    if valid_name(name):
        return name
    if not name:
        raise OperatorError("An engine needs a name: give one of lower-case letters and digits, like llama-8b.")
    shown = printable(name[:MAX_NAME])
    if len(name) > MAX_NAME:
        raise OperatorError(f"The engine name {shown}… has {len(name)} characters: use at most {MAX_NAME}.")
    raise OperatorError(
        f"{shown!r} can not be an engine's name: use lower-case letters, digits, '-', '_' and '.', "
        f"beginning with a letter or digit, like {_cleaned(name)}."
    )


def is_account(name: str) -> bool:
    """Whether an account of a machine can be called so."""
    return _ACCOUNT.match(name) is not None


def name_for(model: str, taken: Collection[str] = ()) -> str:
    """A name for an engine that serves `model` (a path, hub id or short name), unlike all that are `taken`."""
    last = model.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].lower()
    for ending in _ENDINGS:
        last = last.removesuffix(ending)
    base = _cleaned(last)
    if base not in taken:
        return base
    numbered = (base[: MAX_NAME - len(suffix)] + suffix for suffix in (f"-{number}" for number in count(2)))
    return next(name for name in numbered if name not in taken)


def _cleaned(text: str) -> str:
    cleaned = _UNSAFE.sub("-", text.lower()).strip("-_.")[:MAX_NAME].rstrip("-_.")
    return cleaned or "engine"
