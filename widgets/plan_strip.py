"""The plans in a row, one of them on the board; shown where there is more than one."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events

from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import Line, LineView
from gpudeck.widgets.messages import PlanChosen
from gpudeck.widgets.verdict import STATE_STYLES

_LEAST = 6  # cells of a name


@dataclass(frozen=True, slots=True)
class PlanView:
    """One plan as the strip shows it: its engine's name (foreign text), its verdict (None: no card yet), its cards."""

    name: str
    state: VerdictState | None = None
    gpus: tuple[int, ...] = ()


class PlanStrip(LineView, can_focus=False):
    """A click on a plan posts `PlanChosen`."""

    DEFAULT_CSS = """
    PlanStrip { height: 1; width: 1fr; overflow: hidden; scrollbar-size: 0 0; }
    """

    def __init__(self, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(id=id)
        self._glyphs = glyphs
        self._plans: tuple[PlanView, ...] = ()
        self._current = 0
        self._places: list[tuple[int, int]] = []  # columns from and to, plan by plan
        self.display = False

    def show(self, plans: Sequence[PlanView], current: int) -> None:
        if (tuple(plans), current) != (self._plans, self._current):
            self._plans, self._current = tuple(plans), current
            self.display = len(plans) > 1
            self._draw()

    def on_resize(self) -> None:
        self._draw()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        for place, (start, end) in enumerate(self._places):
            if start <= event.x < end:
                self.post_message(PlanChosen(place))

    def _draw(self) -> None:
        width = self.room.width
        if not width or not self._plans:
            return
        blocks = [self._block(place, plan, 0) for place, plan in enumerate(self._plans)]
        if sum(map(_width, blocks)) > width:
            # The cards of each are told on the board; names are cut before plans are left out.
            room = max(width // len(self._plans) - 6, _LEAST)
            blocks = [self._block(place, plan, room) for place, plan in enumerate(self._plans)]
        x, self._places = 0, []
        for block in blocks:
            self._places.append((x, x + _width(block)))
            x += _width(block)
        self.show_lines([tuple(span for block in blocks for span in block)])

    def _block(self, place: int, plan: PlanView, room: int) -> Line:
        """`● coder 0,2`; with `room` the name alone, on as many cells."""
        glyphs, ground = self._glyphs, " cursor" if place == self._current else ""
        name = printable(plan.name) or "no model yet"
        if room:
            name = glyphs.cut(name, room)
        sign, style = (glyphs.state(plan.state), STATE_STYLES[plan.state]) if plan.state else (glyphs.info, "muted")
        cards = "" if room or not plan.gpus else f" {','.join(map(str, plan.gpus))}"
        return (
            (f" {sign} ", style + ground),
            (name, ("strong" if ground else "text") + ground),
            (f"{cards} ", "muted" + ground),
            (" ", ""),
        )


def _width(line: Line) -> int:
    return sum(cell_len(text) for text, _ in line)
