"""Earlier starts, told from systemd's own lines in the journal; of real units: tests/systemd/test_past_starts.py."""

import json
import time

import pytest

from gpudeck.services.engine.starts.in_journal import told_starts
from gpudeck.services.engine.starts.outcome import outcome_of, start_words
from gpudeck.services.engine.types import Start

STARTED, STOPPING = "39f53479d3a045ac8e11786248231fbf", "de5b426a63be47a7b6ac3eaac82e2f6f"
STOPPED = "9d1aaa27d60140bd96365438aad20286"
EXIT, FAILURE, SUCCESS = (
    "98e322203f7a4ed290d09fe03c09fe15",
    "d9b373ed55a64feb8242e02dbe79a49c",
    "7ad2d189f7e94e70a38c781354912448",
)


def told(kind: str, invocation: str, second: int, **more: str) -> bytes:
    fields = {"MESSAGE_ID": kind, "INVOCATION_ID": invocation, "__REALTIME_TIMESTAMP": str(second * 1_000_000)}
    return json.dumps(fields | more).encode()


def test_each_start_is_told_with_its_end_the_newest_first() -> None:
    exited = {"COMMAND": "ExecStart", "EXIT_CODE": "exited", "EXIT_STATUS": "3"}
    killed = {"COMMAND": "ExecStart", "EXIT_CODE": "killed", "EXIT_STATUS": "9"}
    entries = [
        told(STARTED, "a", 10),
        told(STOPPING, "a", 20),
        told(SUCCESS, "a", 21),
        told(STOPPED, "a", 22),
        told(STARTED, "b", 30),
        told(EXIT, "b", 31, COMMAND="ExecStartPost", EXIT_CODE="exited", EXIT_STATUS="7"),
        told(EXIT, "b", 32, **exited),
        told(FAILURE, "b", 33, UNIT_RESULT="exit-code"),
        told(STARTED, "c", 40),
        told(EXIT, "c", 41, **killed),
        told(FAILURE, "c", 42, UNIT_RESULT="signal"),
        told(STARTED, "d", 50),
        told(SUCCESS, "d", 51),
        b"no entry",
        told(STARTED, "e", 60),
    ]
    assert told_starts(entries) == (
        Start("e", 60.0),
        Start("d", 50.0, 51.0, "ended by itself", failed=True),
        Start("c", 40.0, 42.0, "killed by SIGKILL", failed=True),
        Start("b", 30.0, 33.0, "ended with exit status 3", failed=True),
        Start("a", 10.0, 21.0, "stopped"),
    )


def test_at_user_scope_the_invocation_has_another_name() -> None:
    entries = [
        {"MESSAGE_ID": kind, "USER_INVOCATION_ID": "u", "_SYSTEMD_INVOCATION_ID": "manager", "__REALTIME_TIMESTAMP": at}
        for kind, at in ((STARTED, "5000000"), (STOPPING, "8000000"), (STOPPED, "9000000"))
    ]
    written = [json.dumps(entry).encode() for entry in entries]
    assert told_starts(written[:1]) == (Start("u", 5.0),)
    assert told_starts(written) == (Start("u", 5.0, 9.0, "stopped"),)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("oom-kill", "killed by the kernel, since memory ran out"),
        ("timeout", "took too long to start or stop, and was killed"),
        ("core-dump", "killed by SIGSEGV"),
        ("start-limit-hit", "failed (start-limit-hit)"),
    ],
)
def test_other_ends(result: str, said: str) -> None:
    assert outcome_of(result, killed=True, status=11, asked=False) == (said, True)


def test_a_start_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    at = 1764551876.0
    ended = Start("x", at, at + 75, "ended with exit status 1", failed=True)
    assert start_words(ended, runs=False) == "01 Dec 01:17:56  ended with exit status 1 after 1 min 15 s"
    assert start_words(Start("x", at), runs=True) == "01 Dec 01:17:56  runs now"
    assert start_words(Start("x", at), runs=False) == "01 Dec 01:17:56  its end is not told"
    assert start_words(Start("x", None, at, "stopped"), runs=False) == "began before what is kept  stopped"
    monkeypatch.undo()
    time.tzset()
