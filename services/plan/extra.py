"""Looking into the options that gpudeck passes on as they are: some of them decide memory or a rule."""

import re
from collections.abc import Collection, Iterator, Sequence

_NUMBER = re.compile(r"-\d")  # a negative number is a value, not an option


def option_name(word: str) -> str:
    """The option that a word names, in dashes as vLLM also takes it in underscores; "" for a value.

    `--swap_space=4` names --swap-space (vllm/utils/argparse_utils.py FlexibleArgumentParser).
    """
    if not word.startswith("-") or word == "-" or _NUMBER.match(word):
        return ""
    name = word.split("=", 1)[0]
    return name.replace("_", "-") if name.startswith("--") else name


def options_in(extra: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each option with its value, in order; None for one that stands alone."""
    for place, word in enumerate(extra):
        name = option_name(word)
        if not name:
            continue
        if "=" in word:
            yield name, word.split("=", 1)[1]
        elif place + 1 < len(extra) and not option_name(extra[place + 1]):
            yield name, extra[place + 1]
        else:
            yield name, None


def has_option(extra: Sequence[str], option: str) -> bool:
    """Whether that option is given, with a value or without, and not taken back by its opposite behind it.

    The opposite of `--name` is `--no-name`, and the other way round.
    """
    bare = option.removeprefix("--no-")
    opposite = f"--{bare}" if bare != option else f"--no-{option.removeprefix('--')}"
    given = False
    for name, _ in options_in(extra):
        if name in (option, opposite):
            given = name == option
    return given


def extra_value(extra: Sequence[str], option: str) -> str | None:
    """The value of `--option VALUE` or `--option=VALUE`, the last one given as argparse has it; None without one."""
    found = None
    for name, value in options_in(extra):
        if name == option and value is not None:
            found = value
    return found


def extra_whole(extra: Sequence[str], option: str) -> int | None:
    """Such a value as a whole number from 1 on; None where there is none or it is no such number."""
    text = extra_value(extra, option)
    return int(text) if text is not None and text.isdecimal() and 0 < len(text) < 16 and int(text) > 0 else None


def without_options(extra: Sequence[str], options: Collection[str]) -> tuple[str, ...]:
    """The words without these options and their values."""
    kept: list[str] = []
    dropping = False
    for word in extra:
        name = option_name(word)
        if name:
            dropping = name in options
        if not dropping:
            kept.append(word)
        elif not name or "=" in word:
            dropping = bool(name) and "=" not in word
    return tuple(kept)
