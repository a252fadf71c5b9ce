"""The starts of an embedded engine whose logs are kept: the present or last one, and the one before."""

import os

from gpudeck.services.engine.enginedir import EngineDirectory
from gpudeck.services.engine.logfile import read_lines
from gpudeck.services.engine.starts.outcome import outcome_of
from gpudeck.services.engine.types import LogLine, Start


def starts_in(files: EngineDirectory) -> tuple[Start, ...]:
    """Newest first."""
    found = []
    if files.log.exists() or files.run() is not None:
        found.append(_start(files, before=False))
    if files.previous_log.exists() and not _is_continued(files):
        found.append(_start(files, before=True))
    return tuple(found)


def log_in(files: EngineDirectory, start: Start) -> list[LogLine]:
    """The lines of one of them; none where it is kept no longer.  Raises OSError for a log that can not be read."""
    if start.key == files.previous_log.name:
        return read_lines((files.previous_log,))
    older = (files.previous_log,) if _is_continued(files) else ()
    return read_lines((*older, files.log))


def _start(files: EngineDirectory, *, before: bool) -> Start:
    log = files.previous_log if before else files.log
    run = files.run(before=before)
    end = files.end(run.run, before=before) if run is not None else None
    if run is None or end is None:
        return Start(log.name, None if run is None else run.since)
    status = end.status or 0
    killed = os.WIFSIGNALED(status)
    number = os.WTERMSIG(status) if killed else os.WEXITSTATUS(status)
    result = "success" if end.asked else "signal" if killed else "exit-code"
    outcome, failed = outcome_of(result, killed=killed, status=number, asked=end.asked)
    return Start(log.name, run.since, end.at, outcome, failed)


def _is_continued(files: EngineDirectory) -> bool:
    """Whether the older of the two logs is the first part of the present run's, which had grown too long."""
    run = files.run()
    try:
        return run is not None and files.previous_log.stat().st_mtime > run.since
    except OSError:
        return False
