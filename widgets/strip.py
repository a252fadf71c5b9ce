"""All cards on one line, for screens that show one pane at a time."""

from gpudeck.services.box.types import Reading, Snapshot
from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import Line, LineView, width_of


class CardStrip(LineView, can_focus=False):
    """`0▇61% 1█98% 2✗`: each card's number, a bar of its utilisation, and the figure where there is room for it."""

    DEFAULT_CSS = """
    CardStrip { height: 1; width: 1fr; overflow: hidden; }
    """

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self._snapshot: Snapshot | None = None
        self._stale: float | None = None
        self._trouble: str | None = None

    def show(self, snapshot: Snapshot, *, stale: float | None = None) -> None:
        """Show a snapshot; `stale` is its age in seconds where it is older than it should be."""
        self._snapshot, self._stale, self._trouble = snapshot, stale, None
        self._draw()

    def show_trouble(self, sentence: str) -> None:
        self._trouble = sentence
        self._draw()

    def use_glyphs(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if width := self.room.width:
            self.show_lines([self._line(width)])

    def _line(self, width: int) -> Line:
        glyphs = self._glyphs
        if self._trouble is not None:
            return ((glyphs.cut(f"{glyphs.blocked} {printable(self._trouble)}", width), "error"),)
        if self._snapshot is None:
            return ()
        age: Line = () if self._stale is None else ((f"{glyphs.caution} {self._stale:.0f} s old  ", "warning"),)
        for figures in (True, False):
            line = (*age, *self._cards(self._snapshot, figures))
            if width_of(line) <= width:
                return line
        return _cut(line, width, glyphs)

    def _cards(self, snapshot: Snapshot, figures: bool) -> Line:
        line: list[tuple[str, str]] = []
        for reading in snapshot.readings:
            line.append((str(reading.gpu), "muted"))
            line += self._card(reading, figures)
            line.append((" ", ""))
        return tuple(line[:-1])

    def _card(self, reading: Reading, figures: bool) -> Line:
        glyphs, value = self._glyphs, reading.utilization_percent
        if reading.fault is not None:
            return ((glyphs.blocked, "error"),)
        if value is None:
            return (("n/a", "muted"),)
        sign = glyphs.sparkline([value / 100], 1)
        brake: Line = ((glyphs.caution, "warning"),) if reading.throttle_reasons else ()
        return ((sign, "primary"), *(((f"{value}%", "text"),) if figures else ()), *brake)


def _cut(line: Line, width: int, glyphs: Glyphs) -> Line:
    """The spans that fit whole, and the mark that there are more."""
    kept: list[tuple[str, str]] = []
    for span in line:
        if width_of((*kept, span)) > width - 1:
            break
        kept.append(span)
    return (*kept, (glyphs.ellipsis, "muted"))
