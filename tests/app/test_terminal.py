"""What is found out about the terminal, and that one which goes away takes nothing with it."""

import io
import os
import pty
import subprocess
import sys
from importlib import import_module

import pytest
from textual._xterm_parser import XTermParser
from textual.events import Key

from gpudeck.app.terminal import TerminalFile, draws_unicode, require_terminal, speaks_unicode
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
    with pytest.raises(OperatorError, match=f"TERM={term or ''} can not place a cursor.*gpudeck box --plain"):
        require_terminal()
    monkeypatch.setenv("TERM", "xterm")
    require_terminal()


@pytest.mark.parametrize(
    ("locale", "unicode"),
    [
        ({"LANG": "C"}, False),
        ({"LANG": "POSIX"}, False),
        ({"LANG": "en_US"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LANG": "x.y"}, False),
        ({"LANG": "C.UTF-8"}, True),
        ({"LANG": "de_DE.utf8@euro"}, True),
        ({"LANG": "C.UTF-8", "LC_CTYPE": "C"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "C.UTF-8", "LC_ALL": "C"}, False),
        ({"LANG": "C.UTF-8", "LC_ALL": ""}, True),
        ({}, True),
    ],
)
def test_unicode_is_drawn_where_the_locale_has_it(locale: dict[str, str], unicode: bool) -> None:
    assert speaks_unicode(locale) is unicode


@pytest.mark.parametrize(
    ("term", "unicode"),
    [("xterm-256color", True), ("tmux", True), ("linux", False), ("linux-16color", False), ("vt220", False)],
)
def test_a_terminal_with_few_signs_gets_ascii(term: str, unicode: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpudeck.app.terminal.speaks_unicode", lambda: True)
    monkeypatch.setenv("TERM", term)
    assert draws_unicode() is unicode


@pytest.mark.parametrize("variable", ["LANG", "LC_ALL"])
def test_python_taking_utf_8_for_the_c_locale_is_no_word_of_the_terminal(variable: str) -> None:
    code = "import sys; from gpudeck.app.terminal import speaks_unicode; print(speaks_unicode(), sys.flags.utf8_mode)"
    environment = {name: value for name, value in os.environ.items() if name not in ("LANG", "LC_ALL", "LC_CTYPE")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**environment, variable: "C"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("False")


def test_escape_with_a_digit_close_behind_is_two_keys() -> None:
    import_module("gpudeck.app.lean_driver")
    for digit in "0123456789":
        keys = [event for event in XTermParser().feed(f"\x1b{digit}") if isinstance(event, Key)]
        assert [(key.key, key.character) for key in keys] == [("escape", None), (digit, digit)]
