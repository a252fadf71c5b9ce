"""What the terminal can do, found out before anything is drawn on it."""

import codecs
import errno
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gpudeck.app import places
from gpudeck.services.errors import OperatorError

if TYPE_CHECKING:
    from typing_extensions import Buffer


_FEW_SIGNS = ("linux", "vt", "ansi", "cons")  # how the names of such terminals begin


def require_terminal() -> None:
    """Refuse, in one sentence, a standard output that no panel can be drawn on."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise OperatorError(
            "The panel needs a terminal; the commands do not: gpudeck box, gpudeck plan, gpudeck --help."
        )
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        raise OperatorError(
            f"TERM={os.environ.get('TERM', '')} can not place a cursor, so the panel can not be drawn; "
            "use gpudeck box --plain and the other commands (gpudeck --help), or set TERM to what your terminal is."
        )


def speaks_unicode(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal shows box drawing, by the operator's locale; elsewhere the panel is drawn in ASCII.

    Python itself is no witness: it takes UTF-8 for the C locale (PEP 540), and even sets LC_CTYPE so (PEP 538).  A
    locale that names no encoding has an older one; where none is set at all, as in most containers, nothing is known
    of the terminal, and nearly all speak UTF-8.
    """
    given = _first_environment() if environment is None else environment
    name = next((given[variable] for variable in ("LC_ALL", "LC_CTYPE", "LANG") if given.get(variable)), None)
    if name is None:
        return True
    encoding = name.partition("@")[0].partition(".")[2]
    try:
        return codecs.lookup(encoding).name == "utf-8" if encoding else False
    except LookupError:
        return False


def _first_environment() -> Mapping[str, str]:
    """What this process was started with."""
    try:
        pairs = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return os.environ
    return dict(os.fsdecode(pair).partition("=")[::2] for pair in pairs if b"=" in pair)


def draws_unicode() -> bool:
    """Whether box drawing, dots and blocks can be shown: by the locale, and by what the terminal is.

    The kernel's own console (TERM=linux) has a font of 256 or 512 signs, without round corners, dots or eighths of a
    block whatever the locale; the hardware terminals had less.
    """
    return speaks_unicode() and not os.environ.get("TERM", "").startswith(_FEW_SIGNS)


class TerminalFile(io.FileIO):
    """A terminal that may go away; what is written to it from then on is dropped.

    An error would end Textual's thread that writes, and the panel would wait for it when it leaves.
    """

    def write(self, data: "Buffer") -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return memoryview(data).nbytes


def guard_screen() -> None:
    """Keep the screen for Textual alone.

    Textual draws on file descriptor 2, and so does every C library that complains.  Textual gets a duplicate of the
    terminal; descriptor 2 itself goes to the panel's log from here on.
    """
    sys.stderr.flush()
    line = io.BufferedWriter(TerminalFile(os.dup(2), "w"))
    screen = io.TextIOWrapper(line, encoding=sys.stderr.encoding, errors="backslashreplace")
    log = places.panel_log()
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        # Begun anew at each start: it is of use only after a mishap of the session just ended.
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError:
        target = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(target, 2)
    os.close(target)
    sys.__stderr__ = screen  # type: ignore[misc]
