"""timed_panel.py FILE: the panel on this machine's box, which writes down when each snapshot was there.

One line each, in seconds of the monotonic clock, which the terminal's other end reads too.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from gpudeck.app.panel import Panel, setup_from
from gpudeck.app.terminal import guard_screen
from gpudeck.services.box.types import Box, BoxSource, Demand, Snapshot


class Timed:
    """A source that notes the end of each read."""

    def __init__(self, source: BoxSource, log: TextIO) -> None:
        self._source = source
        self._log = log

    def open(self) -> Box:
        return self._source.open()

    def read(self, demand: Demand = Demand.ALL) -> Snapshot:
        snapshot = self._source.read(demand)
        self._log.write(f"{time.monotonic()}\n")
        self._log.flush()
        return snapshot

    def close(self) -> None:
        self._source.close()


def main(path: str) -> None:
    setup = setup_from(argparse.Namespace(demo=None, box_file=None, plain=False, scope=None), ascii_only=False)
    with Path(path).open("w", encoding="utf-8") as log:
        guard_screen()
        Panel(replace(setup, source=Timed(setup.source, log))).run()


if __name__ == "__main__":
    main(sys.argv[1])
