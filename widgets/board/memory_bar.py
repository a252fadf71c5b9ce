"""One card's memory under a plan: a bar of its parts, each with a texture and a colour of its own; pure."""

from gpudeck.services.plan.findings import GpuMemory
from gpudeck.widgets.glyphs import Glyphs, gib
from gpudeck.widgets.lines import Line, width_of

PARTS = (
    ("weights", "primary", "weights"),
    ("kv_cache", "success", "KV cache"),
    ("overhead", "warning", "overhead"),
    ("other", "error", "others"),
    ("free", "faint", "free"),
)


def memory_bar(memory: GpuMemory, width: int, glyphs: Glyphs) -> Line:
    """The parts of a card's memory on `width` cells.

    A part that is there at all takes a cell; where the plan needs more than the card has, what is over shows in the
    numbers, and the bar is full.
    """
    sizes = [max(0, getattr(memory, name)) for name, _, _ in PARTS]
    cells = _share_out(sizes, width)
    return tuple(
        (getattr(glyphs, name) * count, style) for (name, style, _), count in zip(PARTS, cells, strict=True) if count
    )


def memory_figures(memory: GpuMemory, width: int, glyphs: Glyphs) -> Line:
    """The same in GiB, as much as `width` cells hold: what does not fit, else weights, KV cache and what is left."""
    if memory.free < 0:
        return ((glyphs.cut(f"{glyphs.blocked} {gib(-memory.free)} GiB too much", width), "error"),)
    for blank, between in ((" ", "  "), ("", " "), ("", "")):
        line: list[tuple[str, str]] = []
        for name, style in (("weights", "primary"), ("kv_cache", "success"), ("free", "muted")):
            line += [(f"{getattr(glyphs, name)}{blank}{gib(getattr(memory, name))}", style), (between, "")]
        if width_of(tuple(line[:-1])) <= width:
            return tuple(line[:-1])
    return ((glyphs.cut(line[0][0], width), line[0][1]),)


def legend(glyphs: Glyphs) -> Line:
    """What the textures of the bars stand for, with the colour of each."""
    line: list[tuple[str, str]] = []
    for name, style, word in PARTS:
        line += [(getattr(glyphs, name), style), (f" {word}   ", "muted")]
    return tuple(line)


def _share_out(sizes: list[int], width: int) -> list[int]:
    """Cells in proportion to sizes, by largest remainder, with one at least for what is not zero."""
    total = sum(sizes)
    if not total or width < len(sizes):
        return [0] * (len(sizes) - 1) + [max(width, 0)]
    cells = [max(1, size * width // total) if size else 0 for size in sizes]
    by_need = sorted(range(len(sizes)), key=lambda part: cells[part] - sizes[part] * width / total)
    for part in by_need:
        if sum(cells) < width and sizes[part]:
            cells[part] += 1
    while sum(cells) > width:
        cells[cells.index(max(cells))] -= 1
    cells[cells.index(max(cells))] += width - sum(cells)
    return cells
