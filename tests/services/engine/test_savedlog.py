"""A saved log: whole or not at all, never over another file, and a sentence where it can not be."""

from pathlib import Path

import pytest

from gpudeck.services.engine.savedlog import save
from gpudeck.services.errors import OperatorError


def test_a_new_file_is_written_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert save("~/one.log", "größe\n") == tmp_path / "one.log"
    assert save("two.log", "x\udcff\n") == tmp_path / "two.log"
    assert (tmp_path / "one.log").read_text(encoding="utf-8") == "größe\n"
    assert (tmp_path / "one.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "A file needs a name"),
        ("there", "is there already: give another name."),
        (".", "is there already"),
        ("no/such/folder", "can not be written (No such file or directory): give another path."),
        ("x" * 300, "can not be written (File name too long)"),
        ("nul\0", "can not be written (embedded null byte)"),
        ("/dev/full/x", "can not be written (Not a directory)"),
    ],
)
def test_why_not_is_said_in_a_sentence(path: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").write_text("mine")
    with pytest.raises(OperatorError) as told:
        save(path, "text")
    assert said in str(told.value)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]
