"""The journal of one unit, read back; `JournalFollower` follows it as it grows.

`journalctl` is the reader: libsystemd's own interface has no stable Python binding, and a child process can be ended at
any moment.  The forms of the call were tried on systemd 252 and 257: `-n` with `-f` loses lines of the first burst,
`--no-tail` with a start or a cursor loses none.
"""

import json
import os
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gpudeck.services.engine.types import LogLine, Scope
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

LONGEST_HISTORY = 200_000
_LONGEST_LINE = 1 << 16  # characters; only what is written past stdout (sd_journal_send) is longer than 48 KiB
_READ_SECONDS = 60
_JOURNALS = ("/var/log/journal", "/run/log/journal")

# Which run of the unit an entry is from: the engine's own entries, and systemd's about it at system and at user scope.
_INVOCATIONS = ("_SYSTEMD_INVOCATION_ID", "INVOCATION_ID", "USER_INVOCATION_ID")
_FIELDS = ("MESSAGE", "PRIORITY", "_PID", *_INVOCATIONS)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a unit: when systemd noted its start (epoch seconds), and its invocation ID (32 hex digits)."""

    noted_at: float
    invocation: str

    def holds(self, fields: dict[str, Any], at: float) -> bool:
        """Whether an entry is of this run or a later one."""
        return at >= self.noted_at or any(fields.get(name) == self.invocation for name in _INVOCATIONS)


@dataclass(frozen=True, slots=True)
class JournalQuery:
    """Which entries: those of one unit in one scope."""

    unit: str
    scope: Scope

    def command(self, *arguments: str, fields: Sequence[str] = _FIELDS) -> list[str]:
        """The whole command line; cursor and time stamps come with every entry whatever fields are asked for."""
        # --user-unit, not --user -u: it also finds a system user's entries, which lie in the system's journal.
        matches = ["--unit", self.unit] if self.scope is Scope.SYSTEM else ["--user-unit", self.unit]
        wanted = f"--output-fields={','.join(fields)}"
        return ["journalctl", "--all", "--quiet", "--no-pager", "--output=json", wanted, *arguments, *matches]

    def read(self, lines: int | None = None, *, invocation: str | None = None) -> list[LogLine]:
        """What is kept, oldest first: the last `lines`, and never more than LONGEST_HISTORY.

        Of all runs, or of the one with that invocation ID.  Raises OperatorError where the journal can not be read.
        """
        wanted = LONGEST_HISTORY if lines is None else min(max(lines, 0), LONGEST_HISTORY)
        if wanted == 0:
            return []
        self.refuse_if_unreadable()
        found: deque[LogLine] = deque(maxlen=wanted)
        for entry in self.entries(f"--lines={wanted}", *(_of_run(invocation) if invocation else ())):
            found.extend(lines_of(entry))
        return list(found)

    def entries(self, *arguments: str, fields: Sequence[str] = _FIELDS, first_only: bool = False) -> Iterator[bytes]:
        """The entries that are kept now, as journalctl's JSON; raises OperatorError where they can not be read."""
        command = self.command(*arguments, fields=fields)
        with tempfile.TemporaryFile() as errors, started(command, errors) as child:
            # A reader that hangs on a damaged file must not hang the panel.
            patience = threading.Timer(_READ_SECONDS, child.kill)
            patience.start()
            try:
                assert child.stdout is not None
                for entry in child.stdout:
                    yield entry
                    if first_only:
                        child.kill()
                        return
            finally:
                patience.cancel()
            if child.wait():
                raise self._unreadable(last_words(errors))

    def first_cursor(self, invocation: str) -> str | None:
        """Where the log of one run begins; None where nothing is kept of it.  Raises OperatorError as `read` does."""
        first = next(iter(self.entries(*_of_run(invocation), first_only=True)), None)
        lines = lines_of(first) if first is not None else []
        return lines[0].cursor if lines else None

    def refuse_if_unreadable(self) -> None:
        """Raises OperatorError where this user can not read the unit's entries.

        journalctl says nothing then: it shows the reader's own entries, and among these are none of the unit.
        """
        if self.scope is Scope.SYSTEM and not may_read_system_journal():
            raise self._unreadable("")

    def _unreadable(self, words: str) -> OperatorError:
        said = f" ({words})" if words else ""
        return OperatorError(
            f"The journal of {self.unit} can not be read{said}: be root, or have root add you to the group "
            "systemd-journal and log in again."
        )


def _of_run(invocation: str) -> tuple[str, ...]:
    """Matches for the entries of one run, systemd's about it too."""
    return tuple(word for name in _INVOCATIONS for word in ("+", f"{name}={invocation}"))[1:]


def may_read_system_journal() -> bool:
    """Whether this process may open a journal of the system: root may, and the groups systemd-journal and adm."""
    if os.geteuid() == 0:
        return True
    journals = (path for folder in _JOURNALS for path in Path(folder).glob("*/system.journal"))
    return any(os.access(path, os.R_OK) for path in journals)


def lines_of(entry: bytes, run: Run | None = None) -> list[LogLine]:
    """The log lines in one entry of journalctl's JSON; none in what is no entry, or is from before `run`.

    MESSAGE is a text, a list of byte values (where it holds a control character or no UTF-8), null (too long), or a
    list of those where the field came more than once; a message may have several lines.
    """
    try:
        fields = json.loads(entry)
        text = _text(fields.get("MESSAGE"))
        at = int(fields["__REALTIME_TIMESTAMP"]) / 1e6
    except (ValueError, RecursionError, OverflowError, KeyError, TypeError, AttributeError):
        return []
    if run is not None and not run.holds(fields, at):
        return []
    priority, pid, cursor = _number(fields.get("PRIORITY")), _number(fields.get("_PID")), fields.get("__CURSOR")
    return [LogLine(_bounded(line), at, priority, pid, cursor) for line in text.split("\n")]


def _bounded(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]} … {len(line) - _LONGEST_LINE:,} more characters"


def _text(message: Any) -> str:
    if isinstance(message, str):
        return message
    if isinstance(message, list):
        if all(isinstance(value, int) for value in message):
            return bytes(message).decode("utf-8", "replace")
        return "\n".join(_text(value) for value in message)
    return ""


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None


def started(command: list[str], errors: IO[bytes]) -> "subprocess.Popen[bytes]":
    """journalctl, running, its standard output a pipe.  Raises OperatorError where there is none."""
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            # Ctrl-C in the panel's terminal is the panel's.
            start_new_session=True,
        )
    except OSError as error:
        raise OperatorError(f"journalctl can not be run ({error.strerror}): install systemd.") from None


def last_words(errors: IO[bytes]) -> str:
    """What a program said at its end, made printable; "" for nothing."""
    errors.seek(0)
    said = errors.read(4096).decode("utf-8", "replace").strip().splitlines()
    return printable(said[-1].rstrip(".")) if said else ""
