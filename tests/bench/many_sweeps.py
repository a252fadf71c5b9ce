"""many_sweeps.py COUNT: read the box and show it, COUNT times after a warm-up; prints resident KiB before and after."""

import asyncio
import gc
import os
import sys
from pathlib import Path

from textual.app import App, ComposeResult

from gpudeck.services.box.source import open_source
from gpudeck.widgets.cards.box_cards import BoxCards

WARM = 5000  # until caches of text and styles are full


class Cards(App[None]):
    def compose(self) -> ComposeResult:
        yield BoxCards()


def resident_kib() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


async def main(count: int) -> None:
    source = open_source(demo=None, box_file=None)
    source.open()
    app = Cards()
    async with app.run_test(size=(200, 50)) as pilot:
        cards = app.query_one(BoxCards)
        for sweep in range(WARM + count):
            if sweep == WARM:
                before = resident_kib()
            cards.show(source.read())
            if sweep % 20 == 0:
                await pilot.pause()
        after = resident_kib()
    source.close()
    print(before, after)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
