"""The journal of one unit followed as it grows."""

import logging
import os
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO

from gpudeck.services.engine.journal import JournalQuery, Run, last_words, lines_of, started
from gpudeck.services.engine.types import LogLine
from gpudeck.services.errors import OperatorError

BATCH = 500  # lines handed over at once
# What is held for a consumer that is slower than the journal; the oldest beyond are dropped and counted.
HELD = 50_000  # entries
HELD_BYTES = 32 << 20
LONGEST_ENTRY = 16 << 20  # bytes of JSON; one that is longer is left out, and counted
_CHUNK = 1 << 20
_NOTICE = 4  # syslog's warning
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 5.0
_EARLY = 5.0  # seconds by which a busy systemd may note the start later than the engine's first words

Deliver = Callable[[list[LogLine]], None]
log = logging.getLogger(__name__)


class JournalFollower:
    """Follows one unit's journal from `since` on: epoch seconds, the line behind which to begin, or what tells the run
    to begin with (None: from now).

    One thread reads, one delivers.  Delivered batches hold at most BATCH lines; what a slow `deliver` (it may block)
    can not take is dropped oldest first, before it costs anything to read, and the gap is told as a line.  When
    journalctl ends, it goes on from the last cursor.
    """

    def __init__(
        self, query: JournalQuery, deliver: Deliver, *, since: float | LogLine | Callable[[], Run | None] | None = None
    ) -> None:
        self._query = query
        self._deliver = deliver
        self._since = since
        self._asked_at = 0.0  # when `start` was called
        self._run: Run | None = None
        self._cursor = since.cursor if isinstance(since, LogLine) else None
        self._stopping = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._child_lock = threading.Lock()
        self._news = threading.Condition()
        self._held: deque[bytes | LogLine] = deque()  # entries as they came, and words of our own
        self._held_bytes = 0
        self._dropped = 0
        self._threads = [
            threading.Thread(target=self._read, name=f"journal {query.unit}", daemon=True),
            threading.Thread(target=self._hand_over, name=f"log {query.unit}", daemon=True),
        ]

    def start(self) -> None:
        """Raises OperatorError where this user can not read the journal."""
        self._query.refuse_if_unreadable()
        self._asked_at = time.time()
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
            start = f"--after-cursor={self._cursor}" if self._cursor else began
            with tempfile.TemporaryFile() as errors:
                try:
                    got_some = self._run_child(self._query.command("--follow", "--no-tail", start), errors)
                    reason = last_words(errors)
                except OperatorError as error:
                    got_some, reason = False, str(error)
            if self._stopping.is_set():
                return
            if got_some or wait == _FIRST_WAIT:
                self._hold([_notice(f"journalctl ended ({reason or 'without a word'}) and is started again.")])
            wait = _FIRST_WAIT if got_some else min(wait * 2, _LONGEST_WAIT)
            self._stopping.wait(wait)

    def _began(self) -> str:
        """From where to read, in journalctl's words."""
        if isinstance(self._since, (int, float)):
            return f"--since=@{self._since:.6f}"
        if isinstance(self._since, LogLine):
            return f"--since=@{self._since.at or time.time():.6f}"
        run, first = None, None
        try:
            run = self._since() if self._since is not None else None
            # An entry's place is found again whatever the clock did since; its time may be another's too then.
            first = self._query.first_cursor(run.invocation) if run is not None else None
        except OperatorError as error:
            self._hold([_notice(f"the beginning of the run is not known ({error}); the log begins now.")])
        if first is not None:
            return f"--cursor={first}"
        self._run = run
        return f"--since=@{self._asked_at if run is None else run.noted_at - _EARLY:.6f}"

    def _run_child(self, command: list[str], errors: IO[bytes]) -> bool:
        """Read one journalctl to its end; returns whether it told anything."""
        got_some = False
        with started(command, errors) as child:
            with self._child_lock:
                self._child = child
                if self._stopping.is_set():
                    child.terminate()
            try:
                for entries, too_long in _entries(child):
                    got_some = True
                    self._cursor = _last_cursor(entries) or self._cursor
                    self._hold(entries, too_long)
                    if self._stopping.is_set():
                        break
            finally:
                with self._child_lock:
                    self._child = None
                child.kill()
        return got_some

    def _hold(self, entries: "list[bytes] | list[LogLine]", dropped: int = 0) -> None:
        with self._news:
            self._dropped += dropped
            self._held.extend(entries)
            self._held_bytes += sum(map(_size, entries))
            while len(self._held) > HELD or (self._held_bytes > HELD_BYTES and len(self._held) > 1):
                self._held_bytes -= _size(self._held.popleft())
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
                entries = [self._held.popleft() for _ in range(min(BATCH, len(self._held)))]
                self._held_bytes -= sum(map(_size, entries))
            lines = [_left_out(dropped)] if dropped else []
            for entry in entries:
                lines += [entry] if isinstance(entry, LogLine) else lines_of(entry, self._run)
            for first in range(0, len(lines), BATCH):
                try:
                    self._deliver(lines[first : first + BATCH])
                except Exception:
                    # A defect of the consumer's must not end the log.
                    log.exception("a batch of %s", self._query.unit)


def _size(entry: bytes | LogLine) -> int:
    return len(entry) if isinstance(entry, bytes) else 0


def _left_out(count: int) -> LogLine:
    text = f"gpudeck: {count} lines came faster than they could be taken and are left out here."
    return LogLine(text, time.time(), _NOTICE, left_out=count)


def _last_cursor(entries: list[bytes]) -> str | None:
    """Where to go on behind these entries."""
    for entry in reversed(entries):
        if (lines := lines_of(entry)) and lines[-1].cursor is not None:
            return lines[-1].cursor
    return None


def _notice(text: str) -> LogLine:
    return LogLine(f"gpudeck: {text}", time.time(), _NOTICE)


def _entries(child: "subprocess.Popen[bytes]") -> Iterator[tuple[list[bytes], int]]:
    """Whole lines of the child's output in the lumps in which they come, and how many were too long and left out.

    An unfinished last one is left out.
    """
    assert child.stdout is not None
    descriptor = child.stdout.fileno()
    pieces: list[bytes] = []  # of an entry that is not whole yet; none where it is too long already
    size = 0
    while chunk := os.read(descriptor, _CHUNK):
        first, *rest = chunk.split(b"\n")
        size += len(first)
        if size > LONGEST_ENTRY:
            pieces.clear()
        else:
            pieces.append(first)
        if not rest:
            continue
        *whole, last = rest
        yield ([b"".join(pieces), *whole], 0) if size <= LONGEST_ENTRY else (whole, 1)
        pieces, size = [last], len(last)
