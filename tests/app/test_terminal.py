"""What is found out about the terminal, and that one which goes away takes nothing with it."""

import io
import locale
import os
import pty
import sys

import pytest

from gpudeck.app.terminal import TerminalFile, require_terminal, speaks_unicode
from gpudeck.services.errors import OperatorError


def test_what_is_written_to_a_terminal_that_went_away_is_dropped() -> None:
    master, slave = pty.openpty()
    with io.TextIOWrapper(io.BufferedWriter(TerminalFile(slave, "w"))) as screen:
        screen.write("seen")
        screen.flush()
        assert os.read(master, 100) == b"seen"
        assert screen.isatty()
        os.close(master)
        for _ in range(3):
            screen.write("dropped" * 10_000)
            screen.flush()


def test_another_error_is_not_dropped() -> None:
    with TerminalFile("/dev/full", "w") as full, pytest.raises(OSError, match="No space"):
        full.write(b"x")


@pytest.mark.parametrize("term", [None, "", "dumb", "unknown"])
def test_a_terminal_that_can_not_be_drawn_on_is_refused(term: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.delenv("TERM", raising=False)
    if term is not None:
        monkeypatch.setenv("TERM", term)
    with pytest.raises(OperatorError, match=f"TERM={term or ''} can not place a cursor"):
        require_terminal()
    monkeypatch.setenv("TERM", "xterm")
    require_terminal()


@pytest.mark.parametrize(
    ("encoding", "unicode"),
    [("UTF-8", True), ("utf8", True), ("ANSI_X3.4-1968", False), ("latin1", False), ("x", False)],
)
def test_unicode_is_drawn_where_the_locale_has_it(
    encoding: str, unicode: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locale, "getpreferredencoding", lambda _set: encoding)
    assert speaks_unicode() is unicode
