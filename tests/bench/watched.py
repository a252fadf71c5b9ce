"""A program in a terminal of 200×50, and what it costs: CPU time, bytes drawn, memory."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

COLUMNS, ROWS = 200, 50


@dataclass(frozen=True, slots=True)
class Cost:
    """Over the measured time."""

    cpu_percent: float  # of one core
    bytes_a_second: float  # to the terminal
    memory_mib: float  # resident, at the end


@dataclass(frozen=True, slots=True)
class Drawn:
    """One read from the terminal: when (time.monotonic), and how much."""

    at: float
    size: int


class Watched:
    """The program; whatever it draws is counted and thrown away.  Use as a context manager, which ends it."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.drawn: list[Drawn] = []
        self.tail = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        # What SSH hands on: a terminal of 256 colours, and no COLORTERM.
        environment = {**env, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        for variable in ("COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "TMUX"):
            environment.pop(variable, None)
        self.process = subprocess.Popen(
            list(argv),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def begin(self) -> None:
        """Measure from here."""
        self._begun = (time.monotonic(), self._cpu_s(), self._bytes())

    def cost(self) -> Cost:
        """What it cost since `begin`."""
        assert self.process.poll() is None, self.tail.decode(errors="replace")
        began, cpu, drawn = self._begun
        seconds = time.monotonic() - began
        return Cost(
            cpu_percent=100 * (self._cpu_s() - cpu) / seconds,
            bytes_a_second=(self._bytes() - drawn) / seconds,
            memory_mib=self._memory_mib(),
        )

    def __enter__(self) -> "Watched":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        self._reader.join()
        os.close(self.master)

    def _read(self) -> None:
        while True:
            try:
                select.select([self.master], [], [])
                data = os.read(self.master, 1 << 16)
            except OSError:
                return
            if not data:
                return
            self.drawn.append(Drawn(time.monotonic(), len(data)))
            self.tail = (self.tail + data)[-2000:]

    def _bytes(self) -> int:
        return sum(drawn.size for drawn in self.drawn)

    def _cpu_s(self) -> float:
        """Time on a CPU of every thread, as the scheduler counts it: ticks of 10 ms would be a tenth of the result."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def _memory_mib(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
