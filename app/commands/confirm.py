"""Asking before something is done that was not asked for in so many words."""

import sys

from gpudeck.services.errors import OperatorError


def confirmed(what: str, *, yes: bool) -> bool:
    """Say `what` will happen and ask; `yes` answers beforehand.  Without a terminal to ask on, refuses."""
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
    print("Nothing was changed.")
    return False
