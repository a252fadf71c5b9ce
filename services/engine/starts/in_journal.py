"""The starts of one unit that the journal still holds.

systemd writes a line with a fixed MESSAGE_ID when a unit is started, asked to stop, and has ended, each with the
invocation ID of the start (systemd.journal-fields(7); the numbers are sd-messages.h's).  These lines are few, however
much the engine itself logs.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gpudeck.services.engine.journal import JournalQuery
from gpudeck.services.engine.starts.outcome import outcome_of
from gpudeck.services.engine.types import Start

_STARTING = "7d4958e842da4a758f6c1cdc7b36dcc5"
_STARTED = "39f53479d3a045ac8e11786248231fbf"
_STOPPING = "de5b426a63be47a7b6ac3eaac82e2f6f"
_EXIT = "98e322203f7a4ed290d09fe03c09fe15"
_FAILURE = "d9b373ed55a64feb8242e02dbe79a49c"
_SUCCESS = "7ad2d189f7e94e70a38c781354912448"
_STOPPED = "9d1aaa27d60140bd96365438aad20286"
_IDS = (_STARTING, _STARTED, _STOPPING, _EXIT, _FAILURE, _SUCCESS, _STOPPED)
_FIELDS = ("MESSAGE_ID", "INVOCATION_ID", "USER_INVOCATION_ID", "COMMAND", "EXIT_CODE", "EXIT_STATUS", "UNIT_RESULT")
# An entry of systemd's about the unit has its invocation in one of the first two, and in the last a user manager's own.
_OWN = ("INVOCATION_ID", "USER_INVOCATION_ID", "_SYSTEMD_INVOCATION_ID")
_MOST = 2_000  # of systemd's lines: some four hundred starts


@dataclass(slots=True)
class _Told:
    """What was read of one start."""

    at: float | None = None
    ended: float | None = None
    asked: bool = False
    killed: bool = False
    status: int | None = None
    result: str = ""


def starts_of(query: JournalQuery) -> tuple[Start, ...]:
    """The starts of the unit, newest first; the oldest may have lost its beginning.

    Raises OperatorError where the journal can not be read.
    """
    query.refuse_if_unreadable()
    found = told_starts(query.entries(f"--lines={_MOST}", *(f"MESSAGE_ID={each}" for each in _IDS), fields=_FIELDS))
    oldest = next(iter(query.entries(fields=_OWN, first_only=True)), b"{}")
    first = _invocation(_fields(oldest), _OWN)
    if first and all(start.key != first for start in found):
        # Its beginning was vacuumed away, the rest of it was not.
        found = (*found, Start(first))
    return found


def told_starts(entries: Iterable[bytes]) -> tuple[Start, ...]:
    """What systemd's lines, as journalctl's JSON and oldest first, tell of starts; newest first."""
    starts: dict[str, _Told] = {}
    for entry in entries:
        fields = _fields(entry)
        invocation = _invocation(fields, _OWN[:2])
        if not invocation:
            continue
        start = starts.setdefault(invocation, _Told())
        try:
            at = int(fields["__REALTIME_TIMESTAMP"]) / 1e6
        except (KeyError, ValueError, TypeError):
            continue
        match fields.get("MESSAGE_ID"):
            case str(kind) if kind in (_STARTING, _STARTED):
                start.at = at if start.at is None else start.at
            case str(kind) if kind == _STOPPING:
                start.asked = True
            case str(kind) if kind == _EXIT and fields.get("COMMAND") == "ExecStart":
                status = fields.get("EXIT_STATUS")
                start.status = int(status) if isinstance(status, str) and status.isdecimal() else None
                start.killed = fields.get("EXIT_CODE") in ("killed", "dumped")
            case str(kind) if kind in (_FAILURE, _SUCCESS):
                start.ended = at
                start.result = "success" if kind == _SUCCESS else str(fields.get("UNIT_RESULT") or "failed")
            case str(kind) if kind == _STOPPED and not start.result:
                # A user's systemd tells of a good end in this way alone.
                start.ended, start.result = at, "success"
    return tuple(_start(invocation, told) for invocation, told in reversed(starts.items()))


def _start(invocation: str, told: _Told) -> Start:
    if not told.result:
        return Start(invocation, told.at)
    outcome, failed = outcome_of(told.result, killed=told.killed, status=told.status, asked=told.asked)
    return Start(invocation, told.at, told.ended, outcome, failed)


def _fields(entry: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(entry)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _invocation(fields: dict[str, Any], names: Iterable[str]) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str)), "")
