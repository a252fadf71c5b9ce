"""The machine around the cards in a row or two, and what of it makes engines suffer."""

from collections.abc import Sequence

from textual import events

from gpudeck.services.host.judge import size
from gpudeck.services.host.types import SHM, Concern, Disk, HostReading, Keeps
from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs, joined, wrap
from gpudeck.widgets.lines import Line, LineView
from gpudeck.widgets.messages import HostLooked

MOST_ROWS = 4
_CONCERNS = 2  # sentences that are shown; doctor tells them all


class HostLine(LineView, can_focus=False):
    """`host  CPU 12 % of 64 · load 3.2 · memory 400 of 512 GiB free · …`, and a sentence for each threshold passed.

    Posts `HostLooked` when it comes into view and when it leaves it: what nobody sees is not read.
    """

    DEFAULT_CSS = """
    HostLine { height: auto; max-height: 4; width: 1fr; overflow: hidden; }
    """

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self._host: HostReading | None = None
        self._concerns: tuple[Concern, ...] = ()

    def show(self, host: HostReading, concerns: Sequence[Concern]) -> None:
        """Show a reading and what is to be said of it."""
        self._host, self._concerns = host, tuple(concerns)
        self._draw()

    def on_show(self, event: events.Show) -> None:  # noqa: ARG002
        self.post_message(HostLooked(True))

    def on_hide(self, event: events.Hide) -> None:  # noqa: ARG002
        self.post_message(HostLooked(False))

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        # Without a reading one row is kept, so that the line is in view at all.
        width = self.room.width or self.size.width
        if width:
            self.show_lines(self._told(width) if self._host is not None else [()])

    def _told(self, width: int) -> list[Line]:
        assert self._host is not None
        glyphs = self._glyphs
        rows: list[Line] = [((row, "muted"),) for row in _rows(host_facts(self._host), width, glyphs)[:2]]
        told = [(glyphs.caution, concern.says, "warning") for concern in self._concerns[:_CONCERNS]]
        told += [(glyphs.info, accelerator.says, "muted") for accelerator in self._host.accelerators]
        for sign, sentence, style in told:
            text = f"{sign} {printable(sentence)}"
            whole = wrap(text, width)
            # Half a sentence would be worse than its beginning with the mark that there is more.
            shown = whole if len(rows) + len(whole) <= MOST_ROWS else [glyphs.cut(text, width)]
            rows += [((row, style),) for row in shown]
        return rows[:MOST_ROWS]


def host_facts(host: HostReading) -> list[str]:
    """The figures, the most telling first; what is not told is left out."""
    facts = []
    if host.cpu_share is not None:
        facts.append(f"CPU {100 * host.cpu_share:.0f} % of {host.threads}")
    if host.load is not None:
        facts.append(f"load {host.load[0]:.1f}")
    facts.append(f"memory {size(host.memory_available_bytes)} of {size(host.memory_total_bytes)} free")
    if host.swap_total_bytes:
        facts.append(f"swap {size(host.swap_used_bytes)} used")
    facts += [
        f"{_kept(disk)} {'no answer' if disk.free_bytes is None else size(disk.free_bytes) + ' free'}"
        for disk in _fullest(host.disks)
    ]
    if host.shm is not None:
        facts.append(f"{SHM} {size(host.shm.free_bytes)} free")
    return facts


def _fullest(disks: Sequence[Disk]) -> list[Disk]:
    """One disk for each thing kept: the one with the least room."""
    chosen: dict[Keeps, Disk] = {}
    for disk in disks:
        held = chosen.get(disk.keeps)
        if held is None or (disk.free_bytes or 0) < (held.free_bytes or 0):
            chosen[disk.keeps] = disk
    return list(chosen.values())


def _kept(disk: Disk) -> str:
    return {Keeps.MODELS: "models", Keeps.DOWNLOADS: "downloads", Keeps.VLLM_CACHE: "vLLM cache"}[disk.keeps]


def _rows(facts: Sequence[str], width: int, glyphs: Glyphs) -> list[str]:
    """The facts on rows of at most `width` cells, none torn in two."""
    rows, row = [], "host "
    for fact in facts:
        longer = f"{row} {fact}" if row.endswith(" ") else joined((row, fact), glyphs.dot)
        if len(longer) > width and row.strip() != "host":
            rows.append(row)
            row = f"      {fact}"
        else:
            row = longer
    return [glyphs.cut(told, width) for told in (*rows, row)]
