"""The placements that gpudeck proposes, best first, each with its verdict and one line why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.text import printable
from gpudeck.widgets.dialog import Dialog
from gpudeck.widgets.glyphs import Glyphs, wrap
from gpudeck.widgets.lines import Line, LineView, spread, under
from gpudeck.widgets.messages import ObjectiveAsked
from gpudeck.widgets.verdict import STATE_STYLES


@dataclass(frozen=True, slots=True)
class ProposalView:
    """One proposal: `cards` "0,2 | 1,3", of several engines with " + " between; `yields` what it would give."""

    state: VerdictState
    cards: str
    shape: str  # "TP2×PP2"
    yields: str  # "62k tokens"
    why: str  # may hold foreign text: names of cards


class ProposalRows(LineView):
    DEFAULT_CSS = """
    ProposalRows { height: 1fr; overflow-x: hidden; background: $surface; scrollbar-background: $surface; }
    """

    class ClickedAgain(Message):
        """A click on the row under the cursor."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._views: tuple[ProposalView, ...] | None = None
        self._message = ""
        self.current = 0
        self._owners: list[int] = []

    def show(self, views: Sequence[ProposalView] | None, message: str = "") -> None:
        """Show proposals; None while they are being weighed.  `message` stands where there are none."""
        self._views, self._message, self.current = (None if views is None else tuple(views)), message, 0
        self.draw()
        self.scroll_to(y=0, animate=False)

    @property
    def chosen(self) -> int | None:
        """The place of the proposal under the cursor."""
        return self.current if self._views else None

    def move(self, by: int) -> None:
        if self._views:
            self.current = min(max(self.current + by, 0), len(self._views) - 1)
            self.draw()
            rows = [row for row, owner in enumerate(self._owners) if owner == self.current]
            self.keep_visible(rows[0], rows[-1])

    def draw(self) -> None:
        width = self.room.width
        if width <= 0:
            return
        lines: list[Line] = []
        self._owners = []
        for place, view in enumerate(self._views or ()):
            rows = self._rows_of(view, width)
            if place == self.current:
                rows = [under(row, "cursor", width) for row in rows]
            lines += rows
            self._owners += [place] * len(rows)
        if not self._views:
            words = f"Weighing placements{self._glyphs.ellipsis}" if self._views is None else self._message
            lines = [((f" {text}", "muted"),) for text in wrap(printable(words), width - 2)]
        self.show_lines(lines)

    def _rows_of(self, view: ProposalView, width: int) -> list[Line]:
        glyphs = self._glyphs
        right: Line = ((f"{view.yields} ", "text"),)
        cards = glyphs.cut(view.cards, width - cell_len(view.yields) - cell_len(view.shape) - 10)
        style = STATE_STYLES[view.state]
        left: Line = (
            (f" {glyphs.state(view.state)} ", style),
            (cards, "strong"),
            (f"  {view.shape}", "muted"),
        )
        return [
            spread(left, right, width),
            *(((f"   {text}", "muted"),) for text in wrap(printable(view.why), width - 4)),
        ]

    def on_resize(self) -> None:
        self.draw()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        row = event.y + self.scroll_offset.y
        if 0 <= row < len(self._owners):
            again = self._owners[row] == self.current
            self.current = self._owners[row]
            self.draw()
            if again:
                self.post_message(self.ClickedAgain())


class ProposalList(Dialog[int | None]):
    """Gives back the place of the chosen proposal, or None.  `o` posts `ObjectiveAsked`; `show` answers it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "take", "take", id="proposals.take"),
        Binding("o", "objective", "proposed for", id="proposals.objective"),
        Binding("escape,q", "leave", "leave", id="proposals.leave"),
        Binding("down,j,p", "move(1)", "next", show=False, id="proposals.down"),
        Binding("up,k", "move(-1)", "previous", show=False, id="proposals.up"),
    ]
    DEFAULT_CSS = """
    ProposalList > #dialog { height: 70%; min-height: 16; }
    ProposalList #objective { height: 1; margin: 0 0 1 0; }
    """

    def __init__(self, objectives: Sequence[str], objective: str, *, glyphs: Glyphs | None = None) -> None:
        super().__init__("Proposals", glyphs)
        self._objectives = tuple(objectives)
        self._objective = objective
        self._rows = ProposalRows(self.glyphs)

    def compose_body(self) -> ComposeResult:
        yield Static(self._asked_for(), id="objective")
        yield self._rows

    def keys(self) -> tuple[tuple[str, str, str], ...]:
        return (
            ("Enter", "put it on the board", "take"),
            ("o", "asked for something else", "objective"),
            ("Esc", "leave", "leave"),
        )

    def on_mount(self) -> None:
        self._rows.focus()

    def show(self, views: Sequence[ProposalView], objective: str, message: str) -> None:
        """The proposals for an objective; what came for another one is late, and left out."""
        if objective == self._objective:
            self._rows.show(views, message)

    def action_objective(self) -> None:
        after = self._objectives.index(self._objective) + 1
        self._objective = self._objectives[after % len(self._objectives)]
        self.query_one("#objective", Static).update(self._asked_for())
        self._rows.show(None)
        self.post_message(ObjectiveAsked(self._objective))

    def action_move(self, by: int) -> None:
        self._rows.move(by)

    def action_take(self) -> None:
        if self._rows.chosen is not None:
            self.dismiss(self._rows.chosen)

    def action_leave(self) -> None:
        self.dismiss(None)

    def on_proposal_rows_clicked_again(self, event: ProposalRows.ClickedAgain) -> None:
        event.stop()
        self.action_take()

    def _asked_for(self) -> Content:
        """`best for  context  concurrency  latency`, the present one marked by brackets and weight."""
        words: list[tuple[str, str]] = [("best for ", "$foreground 65%")]
        for name in self._objectives:
            here = name == self._objective
            words.append((f"[{name}]" if here else f" {name} ", "bold $primary" if here else "$foreground 65%"))
        return Content.assemble(*words)
