"""The link matrix: the cells that `nvidia-smi topo -m` prints, and what they mean."""

from collections.abc import Sequence
from itertools import combinations

from gpudeck.services.box.types import Box
from gpudeck.widgets.glyphs import Glyphs, wrap
from gpudeck.widgets.lines import Line, LineView, spread, width_of

# The legend of `nvidia-smi topo -m`, nearest first.
MEANINGS = {
    "NV#": "bonded NVLinks, # of them",
    "PIX": "one PCIe bridge at most",
    "PXB": "several PCIe bridges, not the host's",
    "PHB": "through the CPU's PCIe host bridge",
    "NODE": "between host bridges of one NUMA node",
    "SYS": "between NUMA nodes, through the socket link",
}
STYLES = {
    "X": "faint",
    "NV#": "success",
    "PIX": "text",
    "PXB": "text",
    "PHB": "text",
    "NODE": "warning",
    "SYS": "warning",
}

_LEGEND_WIDTH = 34  # cells beside the matrix from which its legend stands there


def link_style(kind: str) -> str:
    """The style of a link kind; the word itself is its sign."""
    return STYLES.get(_class(kind), "muted")


def slowest(box: Box, cards: Sequence[int]) -> str:
    """The kind of link, among all pairs of two or more cards, that the group waits for; fewer NVLinks are slower."""
    order = list(MEANINGS)

    def slowness(kind: str) -> tuple[int, int]:
        name = _class(kind)
        lanes = int(kind[2:]) if name == "NV#" and kind[2:].isdigit() else 0
        return (order.index(name) if name in order else len(order), -lanes)

    return max((box.link(a, b) for a, b in combinations(cards, 2)), key=slowness)


def matrix(box: Box, width: int) -> list[Line]:
    """The matrix and the meaning of the kinds that occur in it, in `width` cells where the cards allow it."""
    labels = [f"GPU{gpu.index}" for gpu in box.gpus]
    cells = [[box.link(a.index, b.index) for b in box.gpus] for a in box.gpus]
    column = max([len(cell) for row in cells for cell in row] + [len(label) for label in labels], default=0) + 2
    if 6 + column * len(labels) > width:
        column -= 1
    affinity = [gpu.numa for gpu in box.gpus]
    shows_numa = any(numa is not None for numa in affinity) and 6 + column * len(labels) + 6 <= width
    head: list[tuple[str, str]] = [(" " * 6, "")] + [(label.rjust(column), "muted") for label in labels]
    if shows_numa:
        head.append(("  NUMA", "muted"))
    lines: list[Line] = [tuple(head)]
    for label, row, numa in zip(labels, cells, affinity, strict=True):
        line = [(label.ljust(6), "muted")] + [(cell.rjust(column), link_style(cell)) for cell in row]
        if shows_numa:
            line.append(((numa or "n/a").rjust(6), "muted"))
        lines.append(tuple(line))
    kinds = {_class(cell) for row in cells for cell in row}
    right = max(map(width_of, lines)) + 4
    beside = _legend(kinds, width - right) if width - right >= _LEGEND_WIDTH else []
    if 0 < len(beside) <= len(lines):
        # Below the matrix it would take rows from the cards.
        rest = [(), *beside, *[()] * len(lines)]
        return [(*spread(line, (), right), *more) if more else line for line, more in zip(lines, rest, strict=False)]
    legend = _legend(kinds, width)
    return [*lines, (), *legend] if legend else lines


def _legend(kinds: set[str], width: int) -> list[Line]:
    return [
        (((kind if number == 0 else "").ljust(6), link_style(kind)), (text, "muted"))
        for kind, meaning in MEANINGS.items()
        if kind in kinds
        for number, text in enumerate(wrap(meaning, max(width - 7, 10)))
    ]


class Topology(LineView):
    """How every two cards reach each other.  Scrolls where the cards outnumber the columns."""

    HELP = """
    ## Links

    Each cell says how two cards reach each other, in the words of `nvidia-smi topo -m`.  It names the way, not its
    speed: measure before you trust one way over another of its kind.
    """
    DEFAULT_CSS = """
    Topology { height: auto; width: 1fr; max-height: 100%; }
    """

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self._box: Box | None = None

    def show(self, box: Box) -> None:
        if box != self._box:
            self._box = box
            self._draw()

    def use_glyphs(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if self._box is None or not self.room.width:
            return
        if not self._box.gpus:
            self.show_lines([((f"{self._glyphs.caution} This box has no GPU.", "warning"),)])
            return
        lines = matrix(self._box, self.room.width)
        self.show_lines(lines, max(sum(len(text) for text, _ in line) for line in lines))


def _class(kind: str) -> str:
    return "NV#" if kind.startswith("NV") else kind
