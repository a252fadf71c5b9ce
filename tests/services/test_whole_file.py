"""Files that stand whole or not at all; what is killed in between is tests/services/test_cut_short.py's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpudeck.services.whole_file import umask_mode, write_whole


def test_its_mode_is_what_was_asked_for_whatever_stood_there(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(b"old")
    path.chmod(0o666)
    write_whole(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)
    before = os.umask(0o027)
    try:
        assert umask_mode() == 0o640
    finally:
        os.umask(before)


def test_a_link_is_replaced_and_what_it_points_to_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"theirs")
    path = tmp_path / "file"
    path.symlink_to(tmp_path / "target")
    write_whole(path, b"ours")
    assert not path.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"theirs"


@pytest.mark.parametrize("there", ["file", "link", "loose"])
def test_a_new_file_takes_nobody_s_place(tmp_path: Path, there: str) -> None:
    path = tmp_path / "file"
    match there:
        case "file":
            path.write_bytes(b"theirs")
        case "link":
            path.symlink_to(tmp_path)
        case _:
            path.symlink_to(tmp_path / "nothing")
    with pytest.raises(FileExistsError):
        write_whole(path, b"ours", new=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_file_system_without_hard_links_takes_new_files_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")  # as vfat says

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "file"
    write_whole(path, b"ours", new=True)
    with pytest.raises(FileExistsError):
        write_whole(path, b"again", new=True)
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"ours"]


def test_what_the_dead_left_is_removed_and_what_the_living_write_is_not(tmp_path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    left = tmp_path / f".keys.{int(dead.stdout)}.abcdefgh.new"
    written = tmp_path / f".keys.{os.getppid()}.abcdefgh.new"
    others = [tmp_path / name for name in (".keys2.1.x.new", ".keys.new", "keys.1.x.new", f".keys.{'9' * 30}.x.txt")]
    for path in (left, written, *others):
        path.touch()
    write_whole(tmp_path / "keys", b"new")
    assert set(tmp_path.iterdir()) == {written, *others, tmp_path / "keys"}


def test_the_longest_name_that_a_file_may_have(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_whole(path, b"1")
    write_whole(path, b"2")
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"2"]
