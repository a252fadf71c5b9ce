"""Every character that is drawn for its shape, in two sets, and text fitted to a width in terminal cells.

The app picks the set once (`Glyphs.unicode()`, or `Glyphs.ascii()` where the locale or the terminal's font has no more)
and hands it to each widget.  A state always has a sign of its own here, so that colour is never the only one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from gpudeck.services.box.types import GIB
from gpudeck.services.plan.findings import Severity, VerdictState


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of drawing characters; each is one cell wide but for `arrow`, `swap` and `degree`."""

    ready: str
    caution: str
    blocked: str
    info: str
    running: str
    starting: str
    stopped: str
    failed: str

    gauge: str  # a bar: its empty cells, the half cell at its end, its full cells
    spark: str  # the heights of a sparkline, lowest first
    weights: str  # the parts of a memory bar
    kv_cache: str
    overhead: str
    other: str
    free: str

    solid: str  # frames: upper left, upper right, lower left, lower right, horizontal, vertical
    dashed: str
    heavy: str
    edge: str  # marks the chosen row
    branch: str  # hangs a row under the one above
    rule: str  # a horizontal line
    dot: str  # between two facts on a row
    arrow: str
    sent: str  # traffic out of a card, and into it
    received: str
    tap: str  # where a card hangs on a rail
    swap: str
    plus: str
    degree: str
    times: str
    ellipsis: str

    @classmethod
    def unicode(cls) -> "Glyphs":
        return _UNICODE

    @classmethod
    def ascii(cls) -> "Glyphs":
        return _ASCII

    def state(self, state: VerdictState) -> str:
        return {VerdictState.READY: self.ready, VerdictState.CAUTION: self.caution}.get(state, self.blocked)

    def severity(self, severity: Severity) -> str:
        return {Severity.ERROR: self.blocked, Severity.WARNING: self.caution}.get(severity, self.info)

    def bar(self, fraction: float | None, width: int) -> tuple[str, str]:
        """A bar of `width` cells as its full and its empty part, to half a cell; what is above zero is always seen."""
        empty, half, full = tuple(self.gauge)
        value = min(max(fraction or 0.0, 0.0), 1.0)
        halves = max(round(value * width * 2), 1 if value else 0) if width > 0 else 0
        filled = full * (halves // 2) + half * (halves % 2)
        return filled, empty * (max(width, 0) - len(filled))

    def sparkline(self, values: Sequence[float | None], width: int) -> str:
        """The last `width` of the values (0 to 1) as heights, right-aligned; None leaves a gap."""
        shown = values[-width:] if width > 0 else ()
        top = len(self.spark) - 1
        drawn = "".join(" " if value is None else self.spark[round(min(max(value, 0), 1) * top)] for value in shown)
        return drawn.rjust(max(width, 0))

    def cut(self, text: str, width: int) -> str:
        """At most `width` cells of a text; what is cut ends in the ellipsis."""
        if cell_len(text) <= width:
            return text
        if width <= 0:
            return ""
        return set_cell_size(text, width - 1).rstrip() + self.ellipsis

    def fit(self, text: str, width: int) -> str:
        """Exactly `width` cells: cut with the mark, or filled with blanks."""
        return set_cell_size(self.cut(text, width), max(width, 0))

    def shorten(self, text: str, width: int) -> str:
        """At most `width` cells, shortened in the middle: of a path both ends tell the most."""
        if cell_len(text) <= width:
            return text
        if width <= 3:
            return self.cut(text, width)
        head = set_cell_size(text, (width - 1) // 3).rstrip()
        room = width - 1 - cell_len(head)
        start = next(start for start in range(len(text)) if cell_len(text[start:]) <= room)
        while start < len(text) and cell_len(text[start]) == 0:
            start += 1  # a combining mark without its letter would lean on the ellipsis
        return head + self.ellipsis + text[start:]


_UNICODE = Glyphs(
    ready="●",
    caution="▲",
    blocked="✗",
    info="·",
    running="●",
    starting="◐",
    stopped="■",
    failed="✗",
    gauge="─╾━",
    spark="▁▂▃▄▅▆▇█",
    weights="█",
    kv_cache="▓",
    overhead="▒",
    other="╳",
    free="░",
    solid="╭╮╰╯─│",
    dashed="╭╮╰╯┄┊",
    heavy="┏┓┗┛━┃",
    edge="▌",
    branch="└",
    rule="─",
    dot="·",
    arrow="→",
    sent="↑",
    received="↓",
    tap="┻",
    swap="⇄",
    plus="+",
    degree="°C",
    times="×",
    ellipsis="…",
)

_ASCII = Glyphs(
    ready="o",
    caution="!",
    blocked="X",
    info="-",
    running="*",
    starting="~",
    stopped="=",
    failed="X",
    gauge=".##",
    spark="_.-=+*#@",
    weights="#",
    kv_cache="=",
    overhead="+",
    other="x",
    free=".",
    solid="++++-|",
    dashed="....-:",
    heavy="####=#",
    edge=">",
    branch="`",
    rule="-",
    dot="-",
    arrow="->",
    sent=">",
    received="<",
    tap="#",
    swap="<>",
    plus="+",
    degree="C",
    times="x",
    ellipsis="~",
)


def wrap(text: str, width: int) -> list[str]:
    """A text on lines of at most `width` cells, broken at blanks, and inside a word only where it is too long."""
    width = max(width, 1)
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and cell_len(line) + 1 + cell_len(word) <= width:
            line += f" {word}"
            continue
        if line:
            lines.append(line)
        while cell_len(word) > width:
            piece = set_cell_size(word, width).rstrip()
            # A wide character does not fit into a single column at all; it goes through rather than loop for ever.
            piece = piece if piece and word.startswith(piece) else word[0]
            lines.append(piece)
            word = word[len(piece) :]
        line = word
    if line:
        lines.append(line)
    return lines or [""]


def gib(size: int | None, digits: int = 1) -> str:
    """Bytes in GiB, without the unit: `23.9`; n/a where the figure is not known."""
    return "n/a" if size is None else f"{size / GIB:.{digits}f}"


def tokens_in_short(tokens: int) -> str:
    """A number of tokens in at most four characters: 812, 62k, 1.2M, 340M."""
    if tokens < 1000:
        return str(tokens)
    if tokens < 999_500:
        return f"{tokens / 1000:.0f}k"
    return f"{tokens / 1e6:.1f}M" if tokens < 9_950_000 else f"{tokens / 1e6:.0f}M"


def card_name(name: str) -> str:
    """A card's name without its maker's and its line's: `RTX 4090 D`, `A100-SXM4-40GB`, `V100-SXM2-16GB`."""
    for prefix in ("NVIDIA ", "GeForce ", "Tesla "):
        name = name.removeprefix(prefix)
    return name


def joined(facts: Iterable[str], dot: str) -> str:
    """Facts on one row with a dot between; empty ones are left out."""
    return f" {dot} ".join(fact for fact in facts if fact)
