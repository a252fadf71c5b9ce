"""journalctl's JSON read into lines, and the follower's bounds; the real one: tests/systemd/test_journal.py."""

import json
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudeck.services.engine import journal_follower
from gpudeck.services.engine.journal import JournalQuery, Run, lines_of
from gpudeck.services.engine.journal_follower import BATCH, JournalFollower
from gpudeck.services.engine.types import LogLine, Scope
from gpudeck.services.errors import OperatorError
from tests.rigs.small_engines import Lines, until


def entry(message: object, **more: object) -> bytes:
    fields = {"MESSAGE": message, "__REALTIME_TIMESTAMP": "1700000000123456", "__CURSOR": "s=1;i=2"}
    return json.dumps(fields | more).encode() + b"\n"


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        ("plain", ["plain"]),
        ("", [""]),
        ("two\nlines", ["two", "lines"]),
        (list(b"\x1b[32mINFO\x1b[0m 50%\rok"), ["\x1b[32mINFO\x1b[0m 50%\rok"]),
        (list(b"caf\xe9"), ["caf\ufffd"]),
        (list("größe\x01".encode()), ["größe\x01"]),
        (None, [""]),
        (["first", list(b"sec\x1bond")], ["first", "sec\x1bond"]),
        ([], [""]),
    ],
)
def test_every_form_of_message(message: object, texts: list[str]) -> None:
    assert [line.text for line in lines_of(entry(message))] == texts


def test_the_other_fields() -> None:
    (line,) = lines_of(entry("x", PRIORITY="3", _PID="77"))
    assert (line.at, line.priority, line.pid, line.cursor) == (1700000000.123456, 3, 77, "s=1;i=2")
    (line,) = lines_of(entry("x", PRIORITY=["3", "4"], _PID=None))
    assert (line.priority, line.pid) == (None, None)


def test_a_run_begins_with_its_first_words_though_systemd_noted_it_late() -> None:
    run = Run(noted_at=1700000001.0, invocation="a" * 32)
    before = [
        lines_of(entry("x", **{name: invocation}), run)
        for name in ("_SYSTEMD_INVOCATION_ID", "INVOCATION_ID", "USER_INVOCATION_ID")
        for invocation in ("a" * 32, "b" * 32)
    ]
    assert [len(lines) for lines in before] == [1, 0, 1, 0, 1, 0]
    later = {"__REALTIME_TIMESTAMP": "1700000001000000", "_SYSTEMD_INVOCATION_ID": "b" * 32}
    assert len(lines_of(entry("x", **later), run)) == 1


@given(st.one_of(st.binary(max_size=200), st.recursive(st.none() | st.text() | st.integers(), st.lists).map(entry)))
def test_no_entry_is_too_odd(raw: bytes) -> None:
    for line in lines_of(raw):
        assert isinstance(line.text, str)
        assert "\n" not in line.text


# What stands in for journalctl below is at the outermost edge: a program of that name, found on PATH.


@pytest.fixture
def fake_journalctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "journalctl"
    monkeypatch.setenv("PATH", str(tmp_path))
    return program


def become(program: Path, script: str) -> None:
    program.write_text(f"#!{sys.executable} -S\nimport os, sys, time\n{script}\n")
    program.chmod(0o755)


FLOOD = """
total = int({total})
text = '{{"MESSAGE":"line %d","__REALTIME_TIMESTAMP":"1700000000000000","__CURSOR":"c%d","PRIORITY":"6","_PID":"1"}}\\n'
for first in range(0, total, 1000):
    sys.stdout.write("".join(text % (number, number) for number in range(first, first + 1000)))
sys.stdout.flush()
time.sleep(1000)
"""


def test_a_flood_arrives_whole_at_a_consumer_that_takes_it(fake_journalctl: Path) -> None:
    become(fake_journalctl, FLOOD.format(total=100_000))
    lines = Lines()
    follower = JournalFollower(JournalQuery("x.service", Scope.USER), lines, since=0.0)
    follower.start()
    try:
        until("the flood does not arrive", lambda: _accounted(lines) == 100_000)
    finally:
        follower.stop()
    assert lines.longest_batch <= BATCH + 1


def test_what_a_slow_consumer_can_not_take_is_dropped_and_counted(
    fake_journalctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_follower, "HELD", 5_000)
    become(fake_journalctl, FLOOD.format(total=60_000))
    go_on, lines = threading.Event(), Lines()

    def slowly(batch: list[LogLine]) -> None:
        go_on.wait(20)
        lines(batch)

    follower = JournalFollower(JournalQuery("x.service", Scope.USER), slowly, since=0.0)
    follower.start()
    try:
        until("nothing is dropped", lambda: follower._dropped >= 60_000 - 5_000 - BATCH)
        assert len(follower._held) <= 5_000
        go_on.set()
        until("the rest does not arrive", lambda: _accounted(lines) == 60_000)
    finally:
        follower.stop()
    numbers = [int(text.removeprefix("line ")) for text in lines.texts if text.startswith("line ")]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 59_999


def _accounted(lines: Lines) -> int:
    notices = [text for text in lines.texts if text.startswith("gpudeck: ")]
    dropped = sum(int(notice.split()[1]) for notice in notices)
    return len(lines.texts) - len(notices) + dropped


def test_a_child_that_ends_is_started_again_from_its_last_entry(fake_journalctl: Path) -> None:
    become(
        fake_journalctl,
        """
after = [word for word in sys.argv if word.startswith("--after-cursor=c")]
number = int(after[0].removeprefix("--after-cursor=c")) + 1 if after else 0
print('{"MESSAGE":"line %d","__REALTIME_TIMESTAMP":"1","__CURSOR":"c%d"}' % (number, number))
print('{"MESSAGE":"half a li', end="")
sys.exit("it broke.")
""",
    )
    lines = Lines()
    follower = JournalFollower(JournalQuery("x.service", Scope.USER), lines, since=0.0)
    follower.start()
    try:
        until("it is not started again", lambda: "line 2" in lines.texts)
    finally:
        follower.stop()
    assert lines.texts[:3] == ["line 0", "gpudeck: journalctl ended (it broke) and is started again.", "line 1"]


def test_a_child_that_never_speaks_is_told_once(fake_journalctl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_follower, "_FIRST_WAIT", 0.01)
    count = fake_journalctl.with_name("count")
    become(fake_journalctl, f"open({str(count)!r}, 'a').write('x'); sys.exit('no.')")
    lines = Lines()
    follower = JournalFollower(JournalQuery("x.service", Scope.USER), lines, since=0.0)
    follower.start()
    try:
        until("it is not tried again", lambda: count.exists() and len(count.read_text()) >= 4)
    finally:
        follower.stop()
    assert lines.texts == ["gpudeck: journalctl ended (no) and is started again."]


def test_no_journalctl_at_all_is_told(fake_journalctl: Path) -> None:
    with pytest.raises(OperatorError, match="journalctl can not be run"):
        JournalQuery("x.service", Scope.USER).read()
    lines = Lines()
    follower = JournalFollower(JournalQuery("x.service", Scope.USER), lines, since=0.0)
    follower.start()
    until("nothing is told", lambda: bool(lines.texts))
    follower.stop()
    assert "install systemd" in lines.texts[0]


def test_stopping_leaves_no_thread_and_no_child(fake_journalctl: Path) -> None:
    pid_file = fake_journalctl.with_name("pid")
    become(fake_journalctl, f"open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(1000)")
    before = threading.active_count()
    follower = JournalFollower(JournalQuery("x.service", Scope.USER), Lines(), since=0.0)
    follower.start()
    pid = until("the child does not start", lambda: pid_file.exists() and pid_file.read_text())
    follower.stop()
    assert threading.active_count() == before
    assert not Path(f"/proc/{pid}").exists()  # ended, and no zombie either
    follower.stop()


def test_stopping_a_follower_that_never_started() -> None:
    JournalFollower(JournalQuery("x.service", Scope.USER), Lines()).stop()


def test_a_run_is_followed_from_its_first_entry_however_the_clock_jumped(fake_journalctl: Path) -> None:
    """Its entries are an hour older than what systemd noted as its start, and than those of the run before."""
    become(
        fake_journalctl,
        """
def entry(number, second, invocation):
    shape = '{"MESSAGE":"line %d","__REALTIME_TIMESTAMP":"%d000000","__CURSOR":"c%d","_SYSTEMD_INVOCATION_ID":"%s"}'
    return shape % (number, second, number, invocation)
log = [entry(0, 9000, "a" * 32), entry(1, 5400, "b" * 32), entry(2, 5401, "b" * 32), entry(3, 1200, "d" * 32)]
own = [line for line in log if "b" * 32 in line]
if "--follow" not in sys.argv:
    assert "_SYSTEMD_INVOCATION_ID=" + "b" * 32 in sys.argv
    print("\\n".join(own))
    sys.exit(0)
begin = [word.removeprefix("--cursor=c") for word in sys.argv if word.startswith("--cursor=")]
print("\\n".join(log[int(begin[0]) if begin else 0:]), flush=True)
time.sleep(1000)
""",
    )
    lines = Lines()
    run = Run(noted_at=9000.0, invocation="b" * 32)
    follower = JournalFollower(JournalQuery("x.service", Scope.USER), lines, since=lambda: run)
    follower.start()
    try:
        until("the run does not arrive", lambda: len(lines.texts) >= 3)
    finally:
        follower.stop()
    assert lines.texts == ["line 1", "line 2", "line 3"]
    assert [line.at for line in lines.lines] == [5400.0, 5401.0, 1200.0]


def test_an_entry_without_end_is_left_out_and_counted(fake_journalctl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_follower, "LONGEST_ENTRY", 100_000)
    become(
        fake_journalctl,
        """
shape = '{"MESSAGE":"%s","__REALTIME_TIMESTAMP":"1","__CURSOR":"c1"}\\n'
sys.stdout.write(shape % "before" + shape % ("x" * 90_000) + shape % ("y" * 5_000_000) + shape % "after")
sys.stdout.flush()
time.sleep(1000)
""",
    )
    lines = Lines()
    follower = JournalFollower(JournalQuery("x.service", Scope.USER), lines, since=0.0)
    follower.start()
    try:
        until("the end does not arrive", lambda: "after" in lines.texts)
    finally:
        follower.stop()
    said = [line for line in lines.lines if not line.left_out]
    assert [line.text[:6] for line in said] == ["before", "xxxxxx", "after"]
    assert said[1].text.endswith(f" … {90_000 - (1 << 16):,} more characters")
    assert sum(line.left_out for line in lines.lines) == 1


def test_what_waits_is_bounded_in_bytes_too(fake_journalctl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_follower, "HELD_BYTES", 1_000_000)
    become(
        fake_journalctl,
        """
for number in range(2_000):
    print('{"MESSAGE":"line %d %s","__REALTIME_TIMESTAMP":"1","__CURSOR":"c1"}' % (number, "x" * 10_000))
sys.stdout.flush()
time.sleep(1000)
""",
    )
    go_on, lines = threading.Event(), Lines()

    def slowly(batch: list[LogLine]) -> None:
        go_on.wait(20)
        lines(batch)

    follower = JournalFollower(JournalQuery("x.service", Scope.USER), slowly, since=0.0)
    follower.start()
    try:
        until("not all is read", lambda: follower._dropped >= 2_000 - journal_follower.BATCH - 100)
        assert sum(len(entry) for entry in follower._held if isinstance(entry, bytes)) <= 1_000_000
        go_on.set()
        until("the end does not arrive", lambda: any(text.startswith("line 1999 ") for text in lines.texts))
    finally:
        follower.stop()
    assert sum(1 + line.left_out - bool(line.left_out) for line in lines.lines) == 2_000
