"""python -m tests.bench.log [RATE]: whether the panel stays live while an engine logs 50,000 lines a second.

The real panel in a pseudo-terminal of 200×50 shows the log alone.  Its reader is fed at that rate, once as journalctl
would (a program that takes its place: no journald is that fast), once by way of a log file, as the embedded runner's
engines write it.  Measured is the time from frame to frame at the terminal's other end.  Prints one table, and exits 1
where more than one frame in a hundred came later than 100 ms after the one before, or the panel took more memory than
its bounds add up to.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.bench.measure import percentile
from tests.bench.watched import Cost, Drawn, Watched

RATE = 50_000
SECONDS = 30.0
TARGET_MS = 100.0
# The panel itself, a ring of 100,000 lines, 32 MiB of entries that wait, and what an allocator keeps.
TARGET_MIB = 200.0
_START_S = 3.0
_FULL_S = 15.0  # until the ring of lines and every queue is full
_APART_S = 0.008  # pieces that are closer together belong to one frame


@dataclass(frozen=True, slots=True)
class _Run:
    """Milliseconds from each frame to the next, what the panel cost, and the machine's load average meanwhile."""

    gaps: list[float]
    cost: Cost
    load: float


def main() -> int:
    rate = int(sys.argv[1]) if len(sys.argv) > 1 else RATE
    runs = [_flooded(kind, rate) for kind in ("journal", "file")]
    late = max(percentile(run.gaps, 0.99) for run in runs)
    most = max(run.cost.memory_mib for run in runs)
    print(f"| {rate:,} lines a second, 200×50 | from the journal | from a file | target | |")
    print("| --- | --- | --- | --- | --- |")
    _row("from frame to frame, median", [f"{percentile(run.gaps, 0.5):.0f} ms" for run in runs])
    at_99 = [f"{percentile(run.gaps, 0.99):.0f} ms" for run in runs]
    _row("from frame to frame, 99th percentile", at_99, f"at most {TARGET_MS:.0f} ms", late <= TARGET_MS)
    _row("from frame to frame, the longest", [f"{max(run.gaps):.0f} ms" for run in runs])
    memory = [f"{run.cost.memory_mib:.0f} MiB" for run in runs]
    _row("memory", memory, f"at most {TARGET_MIB:.0f} MiB", most <= TARGET_MIB)
    _row("CPU, % of a core", [f"{run.cost.cpu_percent:.0f}" for run in runs])
    # Where others want the same CPUs, every frame waits for its turn.
    _row(f"the machine's load, of {os.cpu_count()} CPUs", [f"{run.load:.1f}" for run in runs])
    return 1 if late > TARGET_MS or most > TARGET_MIB else 0


def _row(what: str, measured: list[str], target: str = "", met: bool | None = None) -> None:
    word = "" if met is None else "met" if met else "**short**"
    print(f"| {' | '.join([what, *measured, target, word])} |")


def _flooded(kind: str, rate: int) -> _Run:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        flood = [sys.executable, "-m", "tests.bench.flood", kind, str(rate)]
        if kind == "journal":
            program = home / "journalctl"
            program.write_text(f"#!/bin/sh\nexec {' '.join(flood)}\n")
            program.chmod(0o755)
            return _watched("journal", home)
        log = str(home / "engine.log")
        writer = subprocess.Popen([*flood, log])
        try:
            return _watched(log, home)
        finally:
            writer.kill()
            writer.wait()


def _watched(log: str, home: Path) -> _Run:
    environment = {
        **os.environ,
        "PATH": f"{home}:{os.environ['PATH']}",
        "HOME": str(home),
        **{f"XDG_{name}_HOME": str(home / name.lower()) for name in ("STATE", "CACHE", "CONFIG")},
    }
    with Watched([sys.executable, "-m", "tests.bench.flooded_panel", log], environment) as watched:
        time.sleep(_START_S)
        for key in "3j4z":
            watched.press(key)
            time.sleep(0.3)
        time.sleep(_FULL_S)
        watched.begin()
        begun = time.monotonic()
        time.sleep(SECONDS)
        return _Run(_between_frames(watched.drawn, begun), watched.cost(), os.getloadavg()[0])


def _between_frames(drawn: list[Drawn], since: float) -> list[float]:
    """Milliseconds from each frame's first byte to the next one's."""
    frames = [drawn[0].at]
    last = frames[0]
    for piece in drawn:
        if piece.at - last > _APART_S:
            frames.append(piece.at)
        last = piece.at
    return [1000 * (later - earlier) for earlier, later in pairwise(frames) if later > since]


if __name__ == "__main__":
    sys.exit(main())
