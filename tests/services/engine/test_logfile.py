"""The follower on real files that grow, are replaced and emptied."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from gpudeck.services.engine import logfile
from gpudeck.services.engine.logfile import FileFollower, read_lines
from gpudeck.services.engine.types import LogLine


class Heard:
    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.largest = 0

    def __call__(self, batch: list[LogLine]) -> None:
        self.largest = max(self.largest, len(batch))
        self.lines += batch

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self.lines]


def until(condition: Callable[[], bool], what: str = "condition") -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true"
        time.sleep(0.01)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "engine.log"


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def follower(path: Path, heard: Heard) -> Iterator[FileFollower]:
    follower = FileFollower(path, heard)
    yield follower
    follower.stop()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_what_is_there_and_what_comes(path: Path, heard: Heard, follower: FileFollower) -> None:
    path.write_bytes(b"one\ntwo\n")
    follower.start()
    until(lambda: heard.texts == ["one", "two"])
    append(path, b"thr")
    append(path, b"ee\nfour\n")
    until(lambda: heard.texts == ["one", "two", "three", "four"])


def test_a_file_that_comes_later(path: Path, heard: Heard, follower: FileFollower) -> None:
    follower.start()
    path.write_bytes(b"late\n")
    until(lambda: heard.texts == ["late"])


def test_a_new_run_replaces_the_file(path: Path, heard: Heard, follower: FileFollower) -> None:
    path.write_bytes(b"old\n")
    follower.start()
    until(lambda: heard.texts == ["old"])
    append(path, b"last words")
    path.rename(path.with_suffix(".1"))
    path.write_bytes(b"new\n")
    until(lambda: heard.texts == ["old", "last words", "new"], f"{heard.texts}")


def test_a_file_emptied_in_place(path: Path, heard: Heard, follower: FileFollower) -> None:
    path.write_bytes(b"a long first line\n")
    follower.start()
    until(lambda: len(heard.lines) == 1)
    path.write_bytes(b"new\n")
    until(lambda: heard.texts == ["a long first line", "new"])


def test_a_bar_is_delivered_while_it_is_drawn(path: Path, heard: Heard, follower: FileFollower) -> None:
    follower.start()
    append(path, b"shards:   0%\rshards:  50%")
    until(lambda: heard.texts == ["shards:   0%", "\rshards:  50%"])
    append(path, b"\rshards: 100%\nnext\n")
    until(lambda: heard.texts[2:] == ["\rshards: 100%", "next"])


def test_a_bar_that_never_rests(path: Path, heard: Heard, follower: FileFollower) -> None:
    follower.start()
    deadline = time.monotonic() + 10
    count = 0
    while not any("%" in text for text in heard.texts):
        append(path, b"\rshards: %d%%" % (count % 100))
        count += 1
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert b"\n" not in path.read_bytes()


def test_bytes_that_are_no_text(path: Path, heard: Heard, follower: FileFollower) -> None:
    path.write_bytes(b"\xff\x00\x1b[2J gr\xc3\xbc\xc3\x9f\n")
    follower.start()
    until(lambda: heard.texts == ["�\x00\x1b[2J grüß"])


def test_long_lines_are_split(path: Path, heard: Heard, follower: FileFollower) -> None:
    path.write_bytes(b"x" * 100_000 + b"\n" + b"y" * 60_000)
    follower.start()
    until(lambda: [len(text) for text in heard.texts] == [49152, 49152, 1696, 49152, 10848])


def test_batches_are_bounded(path: Path, heard: Heard, follower: FileFollower) -> None:
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(30_000)))
    follower.start()
    until(lambda: len(heard.lines) == 30_000)
    assert heard.texts[-1] == "line 29999"
    assert heard.largest <= 2000


def test_a_reader_far_behind_says_what_it_passed_over(
    path: Path, heard: Heard, follower: FileFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logfile, "_MAX_BEHIND", 20_000)
    path.write_bytes(b"".join(b"%09d\n" % number for number in range(10_000)))
    follower.start()
    until(lambda: heard.texts[-1:] == ["000009999"])
    first, *rest = heard.texts
    skipped = int(first.split()[1].replace(",", ""))
    assert skipped + len(rest) == 10_000
    assert rest[0] == f"{skipped:09d}"


def test_time_level_and_process_come_from_the_line(path: Path, heard: Heard, follower: FileFollower) -> None:
    stamp = datetime.now().astimezone().replace(microsecond=0)
    path.write_text(f"(EngineCore pid=7) ERROR {stamp:%m-%d %H:%M:%S} [core.py:1] boom\n  File x\n")
    follower.start()
    until(lambda: len(heard.lines) == 2)
    assert heard.lines[0].at == heard.lines[1].at == stamp.timestamp()
    assert (heard.lines[0].priority, heard.lines[0].pid) == (3, 7)
    assert (heard.lines[1].priority, heard.lines[1].pid) == (None, None)


def test_history_since_a_moment(path: Path, heard: Heard) -> None:
    now = datetime.now().astimezone().replace(microsecond=0)
    earlier = datetime.fromtimestamp(now.timestamp() - 3600).astimezone()
    previous = path.with_suffix(".1")
    previous.write_text(
        f"INFO {earlier:%m-%d %H:%M:%S} [a.py:1] long ago\nINFO {now:%m-%d %H:%M:%S} [a.py:1] last run\n"
    )
    path.write_text(f"INFO {now:%m-%d %H:%M:%S} [a.py:1] this run\n")
    follower = FileFollower(path, heard, history=(previous,), since=now.timestamp() - 60)
    follower.start()
    until(lambda: len(heard.lines) == 2)
    follower.stop()
    assert [text.split("] ")[1] for text in heard.texts] == ["last run", "this run"]


def test_reading_back(path: Path) -> None:
    previous = path.with_suffix(".1")
    previous.write_bytes(b"a\nb\n")
    path.write_bytes(b"c\nd without an end")
    assert [line.text for line in read_lines((previous, path))] == ["a", "b", "c", "d without an end"]
    assert [line.text for line in read_lines((previous, path), 3)] == ["b", "c", "d without an end"]
    assert read_lines((path.with_suffix(".none"),)) == []
    assert read_lines((path,), 0) == []


def test_following_goes_on_behind_a_line_that_was_read_back(path: Path, heard: Heard) -> None:
    older = path.with_name("engine.log.1")
    path.write_bytes(b"one\ntwo\n")
    last = read_lines([older, path])[-1]
    path.rename(older)  # a new run begins between the two
    append(older, b"three\n")
    path.write_bytes(b"four\n")
    follower = FileFollower(path, heard, history=[older], after=last.cursor)
    follower.start()
    until(lambda: heard.texts == ["three", "four"])
    follower.stop()
