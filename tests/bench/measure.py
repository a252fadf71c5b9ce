"""What is measured, each on the box of busy_box."""

import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.bench.busy_box import BusyBox
from tests.bench.watched import Cost, Drawn, Watched

_START_S = 6.0  # until the slowest of them has drawn its first screen
_WARM_S = 4.0
_BURST_S = 0.03  # pieces that are this close together belong to one frame
GPUDECK = [sys.executable, "-m", "gpudeck.app"]


def costs(box: BusyBox, programs: Mapping[str, list[str]], seconds: float, home: Path) -> dict[str, Cost]:
    """What each program costs, all of them beside each other; gpudeck shows its Box pane alone."""
    with ExitStack() as stack:
        running = {name: stack.enter_context(Watched(argv, _environment(box, home))) for name, argv in programs.items()}
        time.sleep(_START_S)
        for name, watched in running.items():
            if name == "gpudeck":
                _box_pane_alone(watched)
        time.sleep(_WARM_S)
        for watched in running.values():
            watched.begin()
        time.sleep(seconds)
        return {name: watched.cost() for name, watched in running.items()}


def to_screen_ms(box: BusyBox, beats: int, home: Path) -> list[float]:
    """From a snapshot to the last byte of its frame at the terminal, in ms, for each of `beats` snapshots."""
    log = home / "snapshots"
    argv = [sys.executable, "-m", "tests.bench.timed_panel", str(log)]
    with Watched(argv, _environment(box, home)) as watched:
        time.sleep(_START_S)
        _box_pane_alone(watched)
        time.sleep(_WARM_S)
        begun = time.monotonic()
        time.sleep(beats + 1)
        read = [at for at in map(float, log.read_text().split()) if begun <= at < begun + beats]
        return [1000 * (_end_of_frame(watched.drawn, at) - at) for at in read]


def sweep_ms(box: BusyBox, count: int) -> list[float]:
    """The time of each of `count` sweeps of everything with the delays of a real driver, in ms."""
    box.delay_as_a_real_driver()
    code = (
        "import sys, time; from gpudeck.services.box.source import open_source\n"
        "source = open_source(demo=None, box_file=None); source.open(); source.read()\n"
        "for _ in range(int(sys.argv[1])):\n"
        "    begun = time.perf_counter(); source.read(); print(1000 * (time.perf_counter() - begun)); time.sleep(0.2)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(count)],
        env=box.played.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    box.no_delays()
    return [float(line) for line in done.stdout.split()]


def growth_kib(box: BusyBox, count: int) -> int:
    """By how much the resident memory grew over `count` sweeps that were shown."""
    argv = [sys.executable, "-m", "tests.bench.many_sweeps", str(count)]
    told = subprocess.run(argv, env=box.played.environment, capture_output=True, text=True, check=True).stdout
    before, after = map(int, told.split())
    return after - before


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _box_pane_alone(watched: Watched) -> None:
    for key in "1z":
        watched.press(key)
        time.sleep(0.3)


def _end_of_frame(drawn: list[Drawn], after: float) -> float:
    end: float | None = None
    for piece in drawn:
        if piece.at < after:
            continue
        if end is not None and piece.at - end > _BURST_S:
            break
        end = piece.at
    assert end is not None, "nothing was drawn after the last snapshot"
    return end


def _environment(box: BusyBox, home: Path) -> dict[str, str]:
    """Nobody's configuration and no engines."""
    return {
        **box.played.environment,
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
    }
