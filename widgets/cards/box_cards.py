"""Every card of the box in one scrolling view."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset

from gpudeck.services.box.types import Reading, Snapshot
from gpudeck.services.text import printable
from gpudeck.widgets.cards import facts, rows
from gpudeck.widgets.cards.density import Block, a_row_each, blocks
from gpudeck.widgets.cards.trend import Trend
from gpudeck.widgets.glyphs import Glyphs, wrap
from gpudeck.widgets.lines import Line, LineView
from gpudeck.widgets.messages import CardChosen, CardDragged, CardHighlighted, DetailAsked

NO_COLOURS: Mapping[str, int] = MappingProxyType({})

_WARNINGS = frozenset(("error", "warning"))  # what stays in colour on a card whose figures are old


class BoxCards(LineView):
    """The cards live: full where they all fit, on a wide pane a row each and one for each process; else a row or two
    each with the chosen one unfolded.  Above them stands what happened to the box.

    Moving the cursor posts `CardHighlighted`; Space or Enter on a card, or a click on the chosen one, `CardChosen`; `i`
    posts `DetailAsked`.
    """

    HELP = """
    ## The cards of this box

    Each card with its utilisation, memory, temperature, power, and who holds memory on it.  Where the cards do not all
    fit, each takes a row or two, and the chosen one unfolds.  **Space** takes the chosen card to the board, **i** tells
    all that is known of it.
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="cards.up"),
        Binding("down,j", "move(1)", "Down", show=False, id="cards.down"),
        Binding("home,g", "move_to(0)", "First", show=False, id="cards.first"),
        Binding("end,G", "move_to(-1)", "Last", show=False, id="cards.last"),
        Binding("space,enter", "choose", "Take to the board", id="cards.choose"),
        Binding("i", "tell_all", "All of the card", id="cards.detail"),
    ]
    DEFAULT_CSS = """
    BoxCards { height: 1fr; width: 1fr; min-width: 24; overflow-x: hidden; }
    """

    def __init__(
        self,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self._snapshot: Snapshot | None = None
        self._stale: float | None = None
        self._trouble: str | None = None
        self._history: dict[int, Trend] = {}
        self._links: dict[int, str] = {}  # told once for each box
        self._short = False
        self._colours: Mapping[str, int] = NO_COLOURS
        self._chosen: int | None = None
        self._pressed: tuple[int, Offset] | None = None  # a card under the pressed button, and where that was
        self._owners: list[int | None] = []  # the card that each row belongs to

    @property
    def chosen(self) -> int | None:
        """The index of the card under the cursor."""
        return self._chosen

    def show(self, snapshot: Snapshot, *, stale: float | None = None, colours: Mapping[str, int] = NO_COLOURS) -> None:
        """Show a snapshot; `stale` is its age in seconds where it is older than it should be.

        `colours` are the engines' own, by their names.
        """
        self._colours = colours
        if self._snapshot is None or snapshot.box is not self._snapshot.box:
            self._links = {
                gpu.index: facts.links_in_short(snapshot.box, gpu, self._glyphs) for gpu in snapshot.box.gpus
            }
        if self._snapshot is None or snapshot.at != self._snapshot.at:
            for reading in snapshot.readings:
                value = reading.utilization_percent
                past = self._history.setdefault(reading.gpu, Trend())
                past.add(snapshot.at, None if value is None else value / 100)
        self._snapshot, self._stale, self._trouble = snapshot, stale, None
        indices = [gpu.index for gpu in snapshot.box.gpus]
        if self._chosen not in indices:
            self._chosen = indices[0] if indices else None
        self._draw()

    def show_trouble(self, sentence: str) -> None:
        """Say why there are no readings; the last ones stay in view, greyed."""
        self._trouble = sentence
        self._draw()

    def use_glyphs(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._draw()

    def keep_short(self, short: bool) -> None:
        """Whether each card has a single row, since the chosen one is told in full elsewhere."""
        self._short = short
        self._draw()

    def choose(self, gpu: int) -> None:
        """Put the cursor on a card."""
        if gpu != self._chosen:
            self._chosen = gpu
            self.post_message(CardHighlighted(gpu))
        self._draw()
        if gpu in self._owners:
            last = len(self._owners) - 1 - self._owners[::-1].index(gpu)
            self.keep_visible(self._owners.index(gpu), last)

    def action_move(self, step: int) -> None:
        indices = self._indices()
        if self._chosen in indices:
            self.choose(indices[min(max(indices.index(self._chosen) + step, 0), len(indices) - 1)])

    def action_move_to(self, position: int) -> None:
        indices = self._indices()
        if indices:
            self.choose(indices[position])

    def action_tell_all(self) -> None:
        self.post_message(DetailAsked())

    def action_choose(self) -> None:
        if self._chosen is not None:
            self.post_message(CardChosen(self._chosen))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        gpu = self._card_at(event.y)
        self._pressed = None if gpu is None or event.button != 1 else (gpu, event.screen_offset)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._pressed is not None and event.screen_offset != self._pressed[1]:
            self._hand_over(event.screen_offset)

    def on_mouse_up(self) -> None:
        self._pressed = None

    def on_leave(self) -> None:
        # A quick hand is out of the view before its first move is told.
        if self._pressed is not None:
            self._hand_over(self.app.mouse_position)

    def _hand_over(self, pointer: Offset) -> None:
        """A press that moves is a drag, and the board's."""
        if self._pressed is not None:
            gpu, self._pressed = self._pressed[0], None
            self.post_message(CardDragged(gpu, pointer))

    def on_click(self, event: events.Click) -> None:
        gpu = self._card_at(event.y)
        if gpu is None:
            return
        if gpu == self._chosen and event.chain == 2:
            self.action_choose()
        else:
            self.choose(gpu)

    def on_resize(self) -> None:
        self._draw()

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self._draw()

    def _card_at(self, y: int) -> int | None:
        row = y - self.gutter.top + self.scroll_offset.y
        return self._owners[row] if 0 <= row < len(self._owners) else None

    def _indices(self) -> list[int]:
        return [] if self._snapshot is None else [gpu.index for gpu in self._snapshot.box.gpus]

    def _draw(self) -> None:
        width, height = self.room
        if not width:
            return
        lines: list[Line] = [*(((line, "error"),) for line in self._notice(width)), *self._news(width)]
        owners: list[int | None] = [None] * len(lines)
        dim = self._trouble is not None or self._stale is not None
        late = self._late()
        for gpu, block in self._blocks(width, height - len(lines)):
            for line in block:
                shown = _greyed(line, _WARNINGS) if gpu in late else line
                lines.append(_greyed(line) if dim else shown)
                owners.append(gpu)
        self._owners = owners
        self.show_lines(lines)

    def _late(self) -> set[int]:
        """The cards whose figures are older than the others'."""
        snapshot = self._snapshot
        if snapshot is None:
            return set()
        return {reading.gpu for reading in snapshot.readings if facts.overdue(reading, snapshot.at)}

    def _notice(self, width: int) -> list[str]:
        glyphs = self._glyphs
        if self._trouble is not None:
            text = f"{glyphs.blocked} {printable(self._trouble)}"
        elif self._stale is not None:
            text = f"{glyphs.caution} These readings are {self._stale:.0f} s old."
        elif self._snapshot is None:
            text = "Reading the cards" + glyphs.ellipsis
        elif not self._snapshot.box.gpus:
            text = f"{glyphs.caution} This box has no GPU."
        else:
            return []
        return wrap(text, width)

    def _news(self, width: int) -> list[Line]:
        """Why cards are missing, and the last that happened to the box, in a row."""
        snapshot, glyphs = self._snapshot, self._glyphs
        if snapshot is None or self._trouble is not None:
            return []
        lines: list[Line] = [
            ((line, "error"),)
            for fault in snapshot.box.faults
            for line in wrap(f"{glyphs.blocked} {printable(fault)}", width)
        ]
        event = facts.recent(snapshot) if snapshot.events else None
        if event is not None:
            sign, style = rows.event_sign(event, glyphs)
            lines.append(((glyphs.cut(f"{sign} {facts.happened(event, snapshot.at)}", width), style),))
        return lines

    def _blocks(self, width: int, height: int) -> list[Block]:
        """The rows of each card, at the density that the room allows."""
        snapshot = self._snapshot
        if snapshot is None:
            return []
        views = [
            rows.CardView(
                snapshot.box,
                gpu,
                snapshot.reading(gpu.index) or Reading(gpu.index),
                self._history[gpu.index].means if gpu.index in self._history else (),
                chosen=self.has_focus and gpu.index == self._chosen,
                glyphs=self._glyphs,
                at=snapshot.at,
                links=self._links.get(gpu.index, ""),
                colours=self._colours,
                event=facts.recent(snapshot, gpu.index) if snapshot.events else None,
            )
            for gpu in snapshot.box.gpus
        ]
        return a_row_each(views, width) if self._short else blocks(views, width, height)


def _greyed(line: Line, but: frozenset[str] = frozenset()) -> Line:
    return tuple((text, styles if but & set(styles.split()) else "muted") for text, styles in line)
