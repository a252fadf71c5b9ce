"""The journal of one unit: followed as it grows, and read back.

`journalctl` is the reader: libsystemd's own interface has no stable Python binding, and a child process can be ended at
any moment.  The forms of the call were tried on systemd 252 and 257: `-n` with `-f` loses lines of the first burst,
`--no-tail` with a start or a cursor loses none.
"""

import json
import logging
import os
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gpudeck.services.engine.types import LogLine, Scope
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

BATCH = 2_000  # lines handed over at once
HELD = 50_000  # lines held for a consumer that is slower than the journal; the oldest beyond are dropped and counted
LONGEST_HISTORY = 200_000
_CHUNK = 1 << 20
_READ_SECONDS = 60
_JOURNALS = ("/var/log/journal", "/run/log/journal")
_NOTICE = 4  # syslog's warning
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 5.0

# Which run of the unit an entry is from: the engine's own entries, and systemd's about it at system and at user scope.
_INVOCATIONS = ("_SYSTEMD_INVOCATION_ID", "INVOCATION_ID", "USER_INVOCATION_ID")
_FIELDS = ("MESSAGE", "PRIORITY", "_PID", *_INVOCATIONS)
_EARLY = 5.0  # seconds by which a busy systemd may note the start later than the engine's first words

Deliver = Callable[[list[LogLine]], None]
log = logging.getLogger(__name__)


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
        of_run = [word for name in _INVOCATIONS for word in ("+", f"{name}={invocation}")][1:] if invocation else []
        for entry in self.entries(f"--lines={wanted}", *of_run):
            found.extend(lines_of(entry))
        return list(found)

    def entries(self, *arguments: str, fields: Sequence[str] = _FIELDS, first_only: bool = False) -> Iterator[bytes]:
        """The entries that are kept now, as journalctl's JSON; raises OperatorError where they can not be read."""
        command = self.command(*arguments, fields=fields)
        with tempfile.TemporaryFile() as errors, _started(command, errors) as child:
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
                raise self._unreadable(_last_words(errors))

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
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    if run is not None and not run.holds(fields, at):
        return []
    priority, pid, cursor = _number(fields.get("PRIORITY")), _number(fields.get("_PID")), fields.get("__CURSOR")
    return [LogLine(line, at, priority, pid, cursor) for line in text.split("\n")]


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


class JournalFollower:
    """Follows one unit's journal from `since` on: epoch seconds, the line behind which to begin, or what tells the run
    to begin with (None: from now).

    One thread reads, one delivers.  Delivered batches hold at most BATCH lines; what a slow `deliver` can not take is
    dropped oldest first, and the gap is told as a line.  When journalctl ends, it goes on from the last cursor.
    """

    def __init__(
        self, query: JournalQuery, deliver: Deliver, *, since: float | LogLine | Callable[[], Run | None] | None = None
    ) -> None:
        self._query = query
        self._deliver = deliver
        self._since = since
        self._run: Run | None = None
        self._cursor = since.cursor if isinstance(since, LogLine) else None
        self._stopping = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._child_lock = threading.Lock()
        self._news = threading.Condition()
        self._held: deque[LogLine] = deque()
        self._dropped = 0
        self._threads = [
            threading.Thread(target=self._read, name=f"journal {query.unit}", daemon=True),
            threading.Thread(target=self._hand_over, name=f"log {query.unit}", daemon=True),
        ]

    def start(self) -> None:
        """Raises OperatorError where this user can not read the journal."""
        self._query.refuse_if_unreadable()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        with self._child_lock:
            if self._child is not None:
                self._child.terminate()
        with self._news:
            self._news.notify_all()
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(1)

    # The reading thread

    def _read(self) -> None:
        began = self._began()
        wait = _FIRST_WAIT
        while not self._stopping.is_set():
            start = f"--after-cursor={self._cursor}" if self._cursor else f"--since=@{began:.6f}"
            with tempfile.TemporaryFile() as errors:
                try:
                    got_some = self._run_child(self._query.command("--follow", "--no-tail", start), errors)
                    reason = _last_words(errors)
                except OperatorError as error:
                    got_some, reason = False, str(error)
            if self._stopping.is_set():
                return
            if got_some or wait == _FIRST_WAIT:
                self._hold([_notice(f"journalctl ended ({reason or 'without a word'}) and is started again.")])
            wait = _FIRST_WAIT if got_some else min(wait * 2, _LONGEST_WAIT)
            self._stopping.wait(wait)

    def _began(self) -> float:
        if isinstance(self._since, (int, float)):
            return self._since
        if isinstance(self._since, LogLine):
            return self._since.at or time.time()
        if self._since is not None:
            try:
                self._run = self._since()
            except OperatorError as error:
                self._hold([_notice(f"the beginning of the run is not known ({error}); the log begins now.")])
        return time.time() if self._run is None else self._run.noted_at - _EARLY

    def _run_child(self, command: list[str], errors: IO[bytes]) -> bool:
        """Read one journalctl to its end; returns whether it told anything."""
        got_some = False
        with _started(command, errors) as child:
            with self._child_lock:
                self._child = child
                if self._stopping.is_set():
                    child.terminate()
            try:
                for entries in _entries(child):
                    lines = [line for entry in entries for line in lines_of(entry, self._run)]
                    if lines:
                        got_some = True
                        self._cursor = lines[-1].cursor or self._cursor
                        self._hold(lines)
                    if self._stopping.is_set():
                        break
            finally:
                with self._child_lock:
                    self._child = None
                child.kill()
        return got_some

    def _hold(self, lines: list[LogLine]) -> None:
        with self._news:
            self._held.extend(lines)
            while len(self._held) > HELD:
                self._held.popleft()
                self._dropped += 1
            self._news.notify_all()

    # The delivering thread

    def _hand_over(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: bool(self._held) or self._stopping.is_set())
                if self._stopping.is_set():
                    return
                dropped, self._dropped = self._dropped, 0
                batch = [self._held.popleft() for _ in range(min(BATCH, len(self._held)))]
            if dropped:
                batch.insert(0, _notice(f"{dropped} lines came faster than they could be taken and are left out here."))
            try:
                self._deliver(batch)
            except Exception:
                # A defect of the consumer's must not end the log.
                log.exception("a batch of %s", self._query.unit)


def _notice(text: str) -> LogLine:
    return LogLine(f"gpudeck: {text}", time.time(), _NOTICE)


def _started(command: list[str], errors: IO[bytes]) -> "subprocess.Popen[bytes]":
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


def _entries(child: "subprocess.Popen[bytes]") -> Iterator[list[bytes]]:
    """Whole lines of the child's output in the lumps in which they come; an unfinished last one is left out."""
    assert child.stdout is not None
    descriptor = child.stdout.fileno()
    rest = b""
    while chunk := os.read(descriptor, _CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        yield whole


def _last_words(errors: IO[bytes]) -> str:
    errors.seek(0)
    said = errors.read(4096).decode("utf-8", "replace").strip().splitlines()
    return printable(said[-1].rstrip(".")) if said else ""
