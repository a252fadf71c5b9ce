"""Values written so that systemd reads back exactly them: systemd.syntax(7), "Quoting"."""

import re
import unicodedata
from collections.abc import Sequence

from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.naming import is_account
from gpudeck.services.text import printable

_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NOT_IN_PROGRAM = "\"'\\"  # systemd's string_is_safe(), whatever the quoting
_SHOWN = 60
_LONGEST_LINE = 1 << 20  # systemd's LONG_LINE_MAX, of which the key takes a little


def word(text: str) -> str:
    """One word of a command line or assignment, quoted where it must be.

    Raises OperatorError for characters that no unit can carry.
    """
    checked(text)
    if _PLAIN.match(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def command(argv: Sequence[str]) -> str:
    """The value of an ExecStart= that runs exactly these words; the first is an absolute path.

    It begins with a colon: without it systemd would replace $NAME and ${NAME} in the words.
    """
    if not argv or not argv[0].startswith("/"):
        raise OperatorError(f"{printable(argv[0] if argv else 'An empty command')!r} is no absolute path to a program.")
    if any(character in _NOT_IN_PROGRAM for character in argv[0]):
        raise OperatorError(
            f"systemd runs no program whose path holds a quote or a backslash ({printable(argv[0][:_SHOWN])}): "
            "make a symbolic link to it under another name."
        )
    words = [word(f":{argv[0]}"), *map(word, argv[1:])]
    return _bounded(" ".join(words), "The command")


def assignment(name: str, value: str) -> str:
    """The value of an Environment= that sets one variable."""
    if not _VARIABLE.match(name):
        raise OperatorError(
            f"{printable(name[:_SHOWN])!r} can not be a variable's name: use letters, digits and underscores."
        )
    return _bounded(word(f"{name}={value}"), f"The variable {name}")


def to_end_of_line(text: str) -> str:
    """A value that systemd takes unquoted, all but its % specifiers: a description, a path.

    A backslash at its end would join the next line to it, and is left out.
    """
    return checked(text).replace("%", "%%").rstrip("\\")


def account(name: str) -> str:
    """A user's name, as systemd wants it: systemd.io/USER_NAMES."""
    if not is_account(name):
        raise OperatorError(f"{printable(name[:_SHOWN])!r} is no user's name: use letters, digits, '-' and '_'.")
    return name


def checked(text: str) -> str:
    """Return `text`; raises OperatorError naming a character in it that a unit file can not carry.

    These are control characters (a newline would begin a directive of its own) and what systemd takes for invalid
    UTF-8: lone surrogates and the noncharacters (basic/utf8.c, unichar_is_valid).
    """
    for character in text:
        if not character.isascii() or not character.isprintable():
            code = ord(character)
            noncharacter = 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE
            if noncharacter or unicodedata.category(character) in ("Cc", "Cs"):
                shown = printable(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
                raise OperatorError(f"The character U+{code:04X} in '{shown}' can not stand in a unit: remove it.")
    return text


def _bounded(line: str, what: str) -> str:
    if len(line.encode()) > _LONGEST_LINE - 100:
        raise OperatorError(f"{what} is longer than systemd reads (1 MiB): shorten it.")
    return line
