"""One gpudeck at a time changes an engine."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpudeck.services.errors import OperatorError

_PATIENCE_S = 5.0


@contextmanager
def holding(path: Path, name: str) -> Iterator[None]:
    """Hold the lock file `path` of the engine `name`; raises OperatorError where another gpudeck holds it for long.

    The kernel releases it with the process, however that ends.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise OperatorError(
                        f"Another gpudeck is starting or stopping {name}: wait until it is done, and try again."
                    ) from None
            time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)
