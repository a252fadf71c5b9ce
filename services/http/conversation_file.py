"""A conversation read back from a file of the operator's choice."""

from pathlib import Path

from gpudeck.services.errors import OperatorError
from gpudeck.services.http.conversation import read
from gpudeck.services.http.events import Message
from gpudeck.services.text import printable

MAX_FILE = 16 << 20  # characters: more than any context holds


def load(path: str) -> tuple[Message, ...]:
    """The turns of the file at that path.  Raises OperatorError where it can not be read or holds none."""
    shown = printable(path)
    try:
        with Path(path.strip()).expanduser().open(encoding="utf-8", newline="") as file:
            text = file.read(MAX_FILE + 1)
    except (OSError, ValueError, RuntimeError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or "it is no text"
        raise OperatorError(f"{shown} can not be read ({said}): give another path.") from None
    if len(text) > MAX_FILE:
        raise OperatorError(f"{shown} has more than {MAX_FILE >> 20} million characters: that is no conversation.")
    return read(path.strip(), text)
