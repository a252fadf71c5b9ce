"""How much is told of each card: the most at which they all fit; pure."""

from collections.abc import Sequence

from gpudeck.widgets.cards import rows
from gpudeck.widgets.cards.rows import CardView
from gpudeck.widgets.cards.wide import WIDE_WIDTH, wide
from gpudeck.widgets.lines import Line, under

_LEAST_ROWS = 4  # of a card told in full, its processes and faults aside

Block = tuple[int, list[Line]]  # a card's index, and its rows


def a_row_each(views: Sequence[CardView], width: int) -> list[Block]:
    """Each card on a single row, the chosen one as well: where it is told in full elsewhere."""
    row = rows.one_row if width >= rows.ONE_ROW_WIDTH else rows.bare_row
    if width >= WIDE_WIDTH:
        row = wide
    return [(view.gpu.index, _marked(view, row(view, width)[:1], width)) for view in views]


def blocks(views: Sequence[CardView], width: int, height: int) -> list[Block]:
    """Each card in full where all fit; on a wide pane a row each and one a process; else short, the chosen one full."""
    if len(views) == 1:
        return [(views[0].gpu.index, rows.full(views[0], width))]
    # Painting what will not fit is dear at every beat: it is tried only where it might.
    if sum(_LEAST_ROWS + len(view.reading.processes[: rows.MOST_PROCESSES]) + 1 for view in views) - 1 <= height:
        unfolded = [(view.gpu.index, rows.full(view, width)) for view in views]
        if sum(len(block) + 1 for _, block in unfolded) - 1 <= height:
            return [(gpu, [*block, ()]) for gpu, block in unfolded[:-1]] + unfolded[-1:]
    if width >= WIDE_WIDTH:
        told = [(view.gpu.index, _marked(view, wide(view, width), width)) for view in views]
        if sum(len(block) for _, block in told) <= height:
            return told
    short = rows.one_row
    if width < rows.ONE_ROW_WIDTH:
        short = rows.two_rows if 2 * len(views) <= height else rows.bare_row
    return [
        (view.gpu.index, _marked(view, rows.full(view, width), width) if view.chosen else short(view, width))
        for view in views
    ]


def _marked(view: CardView, block: list[Line], width: int) -> list[Line]:
    return [under(line, "cursor", width) for line in block] if view.chosen else block
