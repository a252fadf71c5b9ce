"""Calendar events, judged by systemd itself: systemd.time(7), systemd-analyze(1)."""

import re
import subprocess

from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

_LONGEST = 256
_SECONDS = 10
_NEXT = re.compile(r"^ *Next elapse: (.+)$", re.MULTILINE)
_HINT = 'give it like "Sun 04:00", "Mon..Fri 03:30" or "daily" (man systemd.time)'


def check_calendar(when: str) -> None:
    """Raise OperatorError for what is no calendar event, or one that never comes again."""
    shown = printable(when[:64])
    if not when.strip() or len(when) > _LONGEST or not when.isprintable():
        raise OperatorError(f"{shown!r} is no calendar event: {_HINT}.")
    try:
        done = subprocess.run(
            ["systemd-analyze", "calendar", "--iterations=1", "--", when],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        )
    except (OSError, subprocess.TimeoutExpired):
        raise OperatorError("systemd-analyze can not be run here: nothing else can judge a calendar event.") from None
    if done.returncode != 0:
        raise OperatorError(f"systemd takes {shown!r} for no calendar event: {_HINT}.")
    found = _NEXT.search(done.stdout)
    if found is None or found[1].strip() == "never":
        raise OperatorError(f"{shown!r} never comes again: {_HINT}.")
