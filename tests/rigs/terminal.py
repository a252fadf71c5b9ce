"""A real terminal for the panel: a pty, its bytes fed to a terminal emulator, keys and SGR mouse codes sent back.

The program sees what it would see over SSH; the test sees what an operator would see.
"""

import base64
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import pyte

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "space": " ",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
}


_HANDS_OVER = b"\x1b]52;c;"  # what follows is for the clipboard (OSC 52)
_CLIPBOARD = re.compile(re.escape(_HANDS_OVER) + rb"([A-Za-z0-9+/=]*)\x07")

_POLL_S = 0.02
_QUIET_S = 0.12  # several frames of the panel


class _Screen(pyte.Screen):
    """pyte's screen, deaf to the private CSI sequences that it would take for SGR or a report."""

    def report_device_status(self, mode: int, **kwargs: object) -> None:
        """Do not answer: the panel gets along without."""

    def select_graphic_rendition(self, *attrs: int, **kwargs: object) -> None:
        if not kwargs.get("private"):
            super().select_graphic_rendition(*attrs)


class Terminal:
    """`argv` running in a terminal of `columns` × `rows`; use as a context manager, which ends what it started."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        columns: int = 200,
        rows: int = 50,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        self.columns, self.rows = columns, rows
        self._screen = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self.bytes_drawn = 0
        self.clipboard = ""  # what was handed to it last (OSC 52)
        self._heard = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **(env or {})}
        for variable in ("COLUMNS", "LINES", "NO_COLOR", "TMUX"):
            environment.pop(variable, None)
        self.process = subprocess.Popen(
            list(argv),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                select.select([self.master], [], [])
                data = os.read(self.master, 1 << 16)
            except OSError:
                return
            if not data:
                return
            with self._lock:
                self._look_for_clipboard(data)
                self.bytes_drawn += len(data)
                self._stream.feed(data)

    def _look_for_clipboard(self, data: bytes) -> None:
        heard = self._heard + data
        end = 0
        for found in _CLIPBOARD.finditer(heard):
            self.clipboard, end = base64.b64decode(found[1]).decode(), found.end()
        # One that has begun and is not whole yet.
        begun = heard.rfind(_HANDS_OVER, end)
        self._heard = heard[begun:] if begun >= 0 else heard[end:][-len(_HANDS_OVER) :]

    # -- what the operator sees

    def lines(self) -> list[str]:
        with self._lock:
            return list(self._screen.display)

    def line(self, row: int) -> str:
        """One row; much quicker than all of them."""
        with self._lock:
            cells = self._screen.buffer[row]
            return "".join(cells[column].data for column in range(self.columns))

    def text(self) -> str:
        return "\n".join(self.lines())

    def cells(self) -> list[list[tuple[str, str, str, str]]]:
        """Every row's cells: character, "" behind a wide one; colour and ground, "aabbcc", "red" or "default"; marks.

        The marks are words: bold, italics, underscore, reverse.
        """
        marks = ("bold", "italics", "underscore", "reverse")
        with self._lock:
            cells = [[self._screen.buffer[row][column] for column in range(self.columns)] for row in range(self.rows)]
        return [
            [(cell.data, cell.fg, cell.bg, " ".join(mark for mark in marks if getattr(cell, mark))) for cell in row]
            for row in cells
        ]

    def invisible(self) -> str:
        """The letters and digits that are drawn in the colour of their ground."""
        with self._lock:
            cells = [self._screen.buffer[row][column] for row in range(self.rows) for column in range(self.columns)]
        return "".join(cell.data for cell in cells if cell.data.isalnum() and cell.fg == cell.bg)

    def find(self, words: str) -> tuple[int, int] | None:
        """Column and row (from 0) where `words` stand on the screen."""
        for row, line in enumerate(self.lines()):
            if words in line:
                return line.index(words), row
        return None

    def wait_for(self, words: str, timeout: float = 30) -> tuple[int, int]:
        """Wait until `words` are on the screen and return where."""
        self.wait_until(lambda screen: words in screen, f"“{words}” on the screen", timeout)
        place = self.find(words)
        assert place is not None, f"“{words}” came and went:\n{self.text()}"
        return place

    def wait_until(self, condition: Callable[[str], bool], what: str, timeout: float = 30) -> None:
        end = time.monotonic() + timeout
        while not condition(self.text()):
            if self.process.poll() is not None:
                raise AssertionError(f"the panel ended ({self.process.returncode}) before {what}:\n{self.text()}")
            if time.monotonic() > end:
                raise AssertionError(f"no {what} after {timeout} s:\n{self.text()}")
            time.sleep(_POLL_S)

    # -- what the operator does

    def send(self, text: str) -> None:
        os.write(self.master, text.encode())

    def press(self, *keys: str) -> None:
        """Press keys one after the other, each when the panel has answered the one before, as a person does."""
        for key in keys:
            self.send(KEYS[key] if key in KEYS else chr(ord(key[-1]) & 0x1F) if key.startswith("ctrl+") else key)
            self.settle()

    def write(self, text: str) -> None:
        """Type text and wait until it is taken in."""
        self.send(text)
        self.settle()

    def settle(self) -> None:
        """Wait until nothing more is drawn for a moment, or a second has passed: live figures are drawn for ever."""
        end, drawn, since = time.monotonic() + 1, -1, time.monotonic()
        while (now := time.monotonic()) < end and now - since < _QUIET_S:
            if self.bytes_drawn != drawn:
                drawn, since = self.bytes_drawn, now
            time.sleep(_POLL_S)

    def mouse(self, kind: str, column: int, row: int) -> None:
        """One SGR mouse report (1006) at a cell counted from 0: press, move (button held), release, hover."""
        button, end = {"press": (0, "M"), "move": (32, "M"), "release": (0, "m"), "hover": (35, "M")}[kind]
        self.send(f"\x1b[<{button};{column + 1};{row + 1}{end}")

    def click(self, column: int, row: int) -> None:
        self.mouse("press", column, row)
        self.mouse("release", column, row)

    def drag_on(self, start: tuple[int, int], end: tuple[int, int], steps: int = 8) -> None:
        """Move with the button held, in `steps`, as a hand does it."""
        for step in range(1, steps + 1):
            column = start[0] + (end[0] - start[0]) * step // steps
            row = start[1] + (end[1] - start[1]) * step // steps
            self.mouse("move", column, row)
            self.settle()

    def resize(self, columns: int, rows: int) -> None:
        with self._lock:
            self._screen.resize(rows, columns)
        self.columns, self.rows = columns, rows
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.killpg(self.process.pid, signal.SIGWINCH)

    # -- its end

    def wait_end(self, timeout: float = 10) -> int:
        return self.process.wait(timeout)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
