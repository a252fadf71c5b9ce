"""The link matrix: the cells that `nvidia-smi topo -m` prints, and what they mean; pure."""

from gpudeck.services.box.types import Box
from gpudeck.widgets.glyphs import wrap
from gpudeck.widgets.lines import Line, spread, width_of
from gpudeck.widgets.links.kinds import MEANINGS, kind_class, link_style

_LEGEND_WIDTH = 34  # cells beside the matrix from which its legend stands there


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
    kinds = {kind_class(cell) for row in cells for cell in row}
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
