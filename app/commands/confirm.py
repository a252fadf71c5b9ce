"""Asking before something is done that was not asked for in so many words."""

import sys

from gpudeck.services.errors import OperatorError


def confirmed(what: str, *, yes: bool, otherwise: str = "Nothing was changed.") -> bool:
    """Say `what` will happen and ask; `yes` answers beforehand.  Without a terminal to ask on, refuses.

    `otherwise` is said to a no."""
    print(what)
    if yes:
        return True
    if not sys.stdin.isatty():
        raise OperatorError("There is no terminal to ask on: give --yes to go ahead.")
    try:
        answer = input("Go ahead? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    print(otherwise)
    return False
