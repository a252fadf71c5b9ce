"""python -m tests.bench.box_cost [--short]: what watching a box costs, beside nvitop and nvtop.

Eight busy cards on the fake NVML, every figure new each second, on terminals of 200×50.  Prints one table, and exits 1
where gpudeck is short of a target.  --short takes half a minute and looks at the two ratios alone, with room for a
machine that does other things: it is what CI runs.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.bench.busy_box import BusyBox
from tests.bench.measure import GPUDECK, costs, growth_kib, percentile, sweep_ms, to_screen_ms
from tests.bench.rivals import NVITOP, nvitop, nvtop
from tests.bench.watched import Cost

SWEEPS = 10_000
SWEEP_MS = 100.0
TO_SCREEN_MS = 50.0
# What an allocator keeps or gives away between two looks at the resident size; 100 bytes leaked a sweep are as much.
GROWTH_KIB = 1000
ROOM_CPU, ROOM_BYTES = 1.6, 1.3  # of --short, over nvitop's


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `short` where the target is missed."""

    what: str
    found: str
    target: str
    short: bool = False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="the ratios alone, in half a minute")
    parser.add_argument("--seconds", type=float, help="how long costs are measured (default: 120, with --short 20)")
    args = parser.parse_args()
    seconds = args.seconds or (20 if args.short else 120)
    programs = {"gpudeck": GPUDECK, "nvitop": nvitop("auto"), "nvitop, full": nvitop("full")}
    if (found := nvtop()) is not None:
        programs["nvtop"] = found
    with tempfile.TemporaryDirectory() as folder, BusyBox(Path(folder)) as box:
        box.run()
        measured = costs(box, programs, seconds, Path(folder))
        rows = _cost_rows(measured, room=args.short)
        if not args.short:
            rows += _other_rows(box, Path(folder))
    _print(measured, rows, seconds)
    return 1 if any(row.short for row in rows) else 0


def _cost_rows(measured: dict[str, Cost], *, room: bool) -> list[Row]:
    """gpudeck against the leaner of nvitop's two faces."""
    ours, theirs = measured["gpudeck"], [cost for name, cost in measured.items() if name.startswith("nvitop")]
    cpu = ours.cpu_percent / min(cost.cpu_percent for cost in theirs)
    drawn = ours.bytes_a_second / min(cost.bytes_a_second for cost in theirs)
    most_cpu, most_drawn = (ROOM_CPU, ROOM_BYTES) if room else (1.0, 1.0)
    return [
        Row("CPU time, nvitop's = 1", f"{cpu:.2f}", f"at most {most_cpu:g}", cpu > most_cpu),
        Row("bytes to the terminal, nvitop's = 1", f"{drawn:.2f}", f"at most {most_drawn:g}", drawn > most_drawn),
    ]


def _other_rows(box: BusyBox, home: Path) -> list[Row]:
    screen = percentile(to_screen_ms(box, 60, home), 0.95)
    sweeps = sweep_ms(box, 60)
    sweep = percentile(sweeps, 0.95)
    grown = growth_kib(box, SWEEPS)
    return [
        Row(
            "snapshot to screen, 95th percentile",
            f"{screen:.0f} ms",
            f"under {TO_SCREEN_MS:.0f} ms",
            screen >= TO_SCREEN_MS,
        ),
        Row(
            "sweep of 8 cards with a real driver's delays, median and 95th percentile",
            f"{percentile(sweeps, 0.5):.0f} and {sweep:.0f} ms",
            f"under {SWEEP_MS:.0f} ms",
            sweep >= SWEEP_MS,
        ),
        Row(
            f"memory after {SWEEPS:,} sweeps",
            f"{grown:+d} KiB",
            f"under {GROWTH_KIB} KiB, what an allocator keeps",
            grown >= GROWTH_KIB,
        ),
    ]


def _print(measured: dict[str, Cost], rows: list[Row], seconds: float) -> None:
    """One table, in Markdown."""
    print(f"| over {seconds:g} s at 1 Hz, 8 cards, 200×50 | CPU, % of a core | bytes/s to the terminal | memory, MiB |")
    print("| --- | --- | --- | --- |")
    for name, cost in measured.items():
        shown = name.replace("nvitop", f"nvitop {NVITOP}", 1)
        print(f"| {shown} | {cost.cpu_percent:.2f} | {cost.bytes_a_second:,.0f} | {cost.memory_mib:.0f} |")
    print("| **gpudeck's targets** | **measured** | **target** | |")
    for row in rows:
        print(f"| {row.what} | {row.found} | {row.target} | {'**short**' if row.short else 'met'} |")


if __name__ == "__main__":
    sys.exit(main())
