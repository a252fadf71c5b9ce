"""Looking into the options that gpudeck passes on as they are: some of them decide memory or a rule."""

from collections.abc import Sequence


def extra_value(extra: Sequence[str], option: str) -> str | None:
    """The value of `--option VALUE` or `--option=VALUE`, the last one given as argparse has it; None without one."""
    found = None
    for place, word in enumerate(extra):
        if word == option and place + 1 < len(extra):
            found = extra[place + 1]
        elif word.startswith(f"{option}="):
            found = word.split("=", 1)[1]
    return found


def has_extra(extra: Sequence[str], option: str) -> bool:
    """Whether that option is given, with a value or without, and not taken back by its --no- form behind it."""
    given = False
    for word in extra:
        name = word.split("=", 1)[0]
        if name in (option, f"--no-{option.removeprefix('--')}"):
            given = name == option
    return given


def extra_whole(extra: Sequence[str], option: str) -> int | None:
    """Such a value as a whole number from 1 on; None where there is none or it is no such number."""
    text = extra_value(extra, option)
    return int(text) if text is not None and text.isdecimal() and 0 < len(text) < 16 and int(text) > 0 else None
