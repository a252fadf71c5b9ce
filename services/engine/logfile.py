"""A log file followed as it grows."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from io import FileIO
from pathlib import Path

from gpudeck.services.engine.loglines import stamped_at, take_apart
from gpudeck.services.engine.types import LogLine

_POLL_S = 0.15
_CHUNK = 1 << 18  # bytes a read
_MAX_LINE = 48 << 10  # bytes; where journald too splits a line
_BATCH = 500  # lines a delivery
_MAX_BEHIND = 16 << 20  # bytes between reader and end of the file; beyond that lines are passed over and counted
LONGEST_HISTORY = 200_000  # lines
_PRIORITIES = {"CRITICAL": 2, "ERROR": 3, "WARNING": 4, "INFO": 6, "DEBUG": 7}  # syslog's


class FileFollower:
    """Reads a log file on a thread of its own and delivers its lines in batches, oldest first.

    A file that is replaced (a new run) is read to its end before the new one is begun; one that is emptied in place is
    read anew from its beginning.  A line keeps its carriage returns; of one without an end (a bar that is being drawn)
    the whole strokes are delivered at once and the last when it has stood still for a poll, each as a line of its own.
    Lines of more than 48 KiB are split.  A reader that falls more than 16 MiB behind passes lines over, and says in a
    line how many.
    """

    def __init__(
        self,
        path: Path,
        deliver: Callable[[list[LogLine]], None],
        *,
        history: Sequence[Path] = (),
        since: float | None = None,
        after: str | None = None,
    ) -> None:
        """`history` are older files that come first; stamped lines from before `since` (epoch seconds) are left out.

        With `after`, the cursor of a line that `read_lines` gave, what stands behind that line is all that comes.
        """
        self._path = path
        self._deliver = deliver
        self._history = history
        self._since = since
        self._after = _place(after) if after is not None else None
        self._rest = b""
        self._still = False  # the unfinished line has not grown since the last poll
        self._entries = _Entries()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"log {path.parent.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def _run(self) -> None:
        for path in self._history:
            with suppress(OSError), path.open("rb", buffering=0) as older:
                if self._after is None or self._skip_to_after(older):
                    self._read_on(older)
                    self._finish_line()
        file: FileIO | None = None
        try:
            while not self._stopped.is_set():
                if file is None:
                    file = self._open()
                if file is not None:
                    self._read_on(file)
                    if self._replaced(file):
                        self._read_on(file)
                        self._finish_line()
                        file.close()
                        file = None
                        continue
                self._stopped.wait(_POLL_S)
        finally:
            if file is not None:
                file.close()

    def _open(self) -> FileIO | None:
        try:
            file = self._path.open("rb", buffering=0)
        except OSError:
            return None
        if self._after is not None:
            self._skip_to_after(file)
            self._after = None
        return file

    def _skip_to_after(self, file: FileIO) -> bool:
        """Go to where the following is to begin; False where that is not in this file."""
        assert self._after is not None
        inode, offset = self._after
        status = os.fstat(file.fileno())
        if status.st_ino != inode:
            return False
        file.seek(min(offset, status.st_size))
        return True

    def _replaced(self, file: FileIO) -> bool:
        try:
            now = self._path.stat()
        except OSError:
            return False  # between two runs: the new file is awaited while the old one stays open
        return not os.path.samestat(now, os.fstat(file.fileno()))

    def _read_on(self, file: FileIO) -> None:
        """Deliver what has been added since the last time."""
        size = os.fstat(file.fileno()).st_size
        if size < file.tell():
            self._finish_line()
            file.seek(0)
        if size - file.tell() > _MAX_BEHIND:
            self._pass_over(file, size - _MAX_BEHIND // 2)
        grown = False
        while not self._stopped.is_set() and (chunk := file.read(_CHUNK)):
            grown = True
            self._send(list(self._lines(chunk)), os.fstat(file.fileno()).st_mtime)
        if grown:
            self._draw()
        elif self._rest:
            if self._still:
                self._finish_line()
            self._still = True

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        self._still = False
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            yield from _split(line)
        if len(self._rest) > _MAX_LINE:
            *full, self._rest = _split(self._rest)
            yield from full

    def _draw(self) -> None:
        """Deliver the strokes of a bar but the last, which may be half written."""
        stroke = self._rest.rfind(b"\r")
        if stroke > 0:
            done, self._rest = self._rest[:stroke], self._rest[stroke:]
            self._send([done], time.time())

    def _finish_line(self) -> None:
        if self._rest:
            line, self._rest = self._rest, b""
            self._send([line], time.time())

    def _pass_over(self, file: FileIO, to: int) -> None:
        self._finish_line()
        count = 0
        while file.tell() < to and (chunk := file.read(min(_CHUNK, to - file.tell()))):
            count += chunk.count(b"\n")
        # Begin with a whole line.
        while (chunk := file.read(_MAX_LINE)) and b"\n" not in chunk:
            pass
        if chunk:
            count += 1
            file.seek(chunk.index(b"\n") + 1 - len(chunk), os.SEEK_CUR)
        self._deliver(
            [
                LogLine(
                    f"… {count:,} lines were passed over: the log is longer than can be followed",
                    priority=4,
                    left_out=count,
                )
            ]
        )

    def _send(self, lines: list[bytes], written_at: float) -> None:
        entries = [self._entries.entry(line, written_at) for line in lines]
        if self._since is not None:
            since = self._since
            entries = [entry for entry in entries if entry.at is None or entry.at >= since]
        for start in range(0, len(entries), _BATCH):
            self._deliver(entries[start : start + _BATCH])


class _Entries:
    """Makes log lines of bytes; remembers the last time stamp."""

    def __init__(self) -> None:
        self._stamp = ""
        self._at: float | None = None

    def entry(self, line: bytes, written_at: float) -> LogLine:
        """`written_at` (epoch seconds) is about when: it decides the year of a stamp."""
        text = line.decode("utf-8", "replace")
        parts = take_apart(text)
        if parts.stamp is not None and parts.stamp != self._stamp:
            self._stamp = parts.stamp
            self._at = stamped_at(parts.stamp, written_at)
        # Lines without a stamp (bars, tracebacks) were written right after the last one that has one.
        priority = None if parts.level is None else _PRIORITIES[parts.level]
        return LogLine(text, self._at if self._at is not None else written_at, priority, parts.pid)


def read_lines(paths: Sequence[Path], lines: int | None = None) -> list[LogLine]:
    """The lines of `paths`, one file after the other: the last `lines`, and never more than LONGEST_HISTORY.

    A file that is not there has none.  Each line's cursor is where it ends, for FileFollower's `after`.  Raises OSError
    for a file that can not be read.
    """
    wanted = LONGEST_HISTORY if lines is None else min(max(lines, 0), LONGEST_HISTORY)
    found: deque[LogLine] = deque(maxlen=wanted)
    for path in paths:
        with suppress(FileNotFoundError), path.open("rb") as file:
            status, entries, offset = os.fstat(file.fileno()), _Entries(), 0
            while line := file.readline(_MAX_LINE):
                offset += len(line)
                entry = entries.entry(line.removesuffix(b"\n"), status.st_mtime)
                found.append(replace(entry, cursor=f"{status.st_ino}:{offset}"))
    return list(found)


def _place(cursor: str) -> tuple[int, int]:
    """The inode and the offset behind the line of that cursor."""
    inode, _, offset = cursor.partition(":")
    return int(inode), int(offset)


def _split(line: bytes) -> Iterator[bytes]:
    if len(line) <= _MAX_LINE:
        yield line
    else:
        for start in range(0, len(line), _MAX_LINE):
            yield line[start : start + _MAX_LINE]
