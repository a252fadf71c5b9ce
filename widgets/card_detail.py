"""Everything that is known of one card, in columns of aligned groups."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from gpudeck.services.box.types import Demand, GpuProcess, MigInstance, Reading, Severity, Snapshot
from gpudeck.services.text import printable
from gpudeck.widgets.cards import facts
from gpudeck.widgets.cards.groups import Group, groups
from gpudeck.widgets.cards.rows import CardView
from gpudeck.widgets.glyphs import Glyphs, gib, joined, wrap
from gpudeck.widgets.lines import Line, LineView, width_of
from gpudeck.widgets.messages import DemandChanged, DetailAsked

LEAST_COLUMN = 35  # cells
_GAP = 2
_LABEL = 14
_EVENTS = 5


class CardDetail(LineView):
    """All of one card: the readings and facts in columns, then its processes, MIG devices and events.

    Posts `DemandChanged` when it comes into view and when it leaves it, `DetailAsked` when it is to go.
    """

    HELP = """
    ## All of a card

    Everything that the driver tells of the chosen card; `n/a` is what the card does not report.
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i,escape", "leave", "Cards alone", id="detail.leave"),
    ]
    DEFAULT_CSS = """
    CardDetail { height: 1fr; width: 1fr; overflow-x: hidden; }
    """

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self._snapshot: Snapshot | None = None
        self._card: int | None = None
        self._seen = False

    def show(self, snapshot: Snapshot, card: int | None) -> None:
        """Show that card of the snapshot; of another card from its beginning."""
        if card != self._card:
            self.scroll_home(animate=False)
        self._snapshot, self._card = snapshot, card
        if self._seen:
            self._draw()

    def use_glyphs(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._draw()

    def action_leave(self) -> None:
        self.post_message(DetailAsked())

    def on_show(self, event: events.Show) -> None:  # noqa: ARG002
        self._seen = True
        self._draw()
        self.post_message(DemandChanged("detail", Demand.ALL))

    def on_hide(self, event: events.Hide) -> None:  # noqa: ARG002
        self._seen = False
        self.post_message(DemandChanged("detail", Demand.NOTHING))

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.room.width
        if width and self._snapshot is not None and self._card is not None:
            self.show_lines(detail(self._snapshot, self._card, width, self._glyphs))


def detail(snapshot: Snapshot, index: int, width: int, glyphs: Glyphs) -> list[Line]:
    """All of a card in `width` cells; nothing for a card that the box does not have."""
    gpu = snapshot.box.gpu(index)
    if gpu is None:
        return []
    reading = snapshot.reading(index) or Reading(index)
    card = CardView(snapshot.box, gpu, reading, (), chosen=False, glyphs=glyphs, at=snapshot.at)
    return [
        *_head(card, width),
        (),
        *columns(groups(card), width),
        (),
        *_processes(card, width),
        *_slices(card, width),
        *_events(snapshot, index, width, glyphs),
    ]


def _head(card: CardView, width: int) -> list[Line]:
    glyphs, gpu = card.glyphs, card.gpu
    told = (printable(gpu.name), str(gpu.compute_capability), printable(gpu.uuid or ""))
    lines: list[Line] = [
        ((f"GPU {gpu.index} ", "strong"), (glyphs.cut(joined(told, glyphs.dot), width - 7), "muted")),
    ]
    late = facts.overdue(card.reading, card.at)
    if card.reading.fault is not None:
        text, style = f"{glyphs.blocked} {facts.ailment(card.reading, card.at)}", "error"
    elif late:
        text, style = f"{glyphs.caution} The card answers slowly: it was read {late} ago.", "warning"
    else:
        return lines
    return [*lines, *(((line, style),) for line in wrap(text, width))]


def columns(told: tuple[Group, ...], width: int) -> list[Line]:
    """The groups in their order in as many columns as fit, of about one height."""
    count = max(1, min((width + _GAP) // (LEAST_COLUMN + _GAP), len(told)))
    room = (width + _GAP) // count - _GAP
    drawn = [_drawn(group, room) for group in told]
    height = next(high for high in range(1, sum(map(len, drawn)) + len(drawn)) if len(_filled(drawn, high)) <= count)
    filled = _filled(drawn, height)
    lines: list[Line] = []
    for y in range(max(map(len, filled))):
        line: Line = ()
        for place, column in enumerate(filled):
            cell = column[y] if y < len(column) else ()
            pad = (room + _GAP) * place - width_of(line)
            line = (*line, (" " * pad, ""), *cell) if cell else line
        lines.append(tuple(span for span in line if span[0]))
    return lines


def _filled(blocks: list[list[Line]], height: int) -> list[list[Line]]:
    """Columns of at most `height` lines, with a blank between two groups; a group that is higher has its own."""
    filled: list[list[Line]] = [[]]
    for block in blocks:
        if filled[-1] and len(filled[-1]) + 1 + len(block) > height:
            filled.append([])
        filled[-1] += [(), *block] if filled[-1] else block
    return filled if all(len(column) <= height for column in filled) else [*filled, *[[]] * len(blocks)]


def _drawn(group: Group, width: int) -> list[Line]:
    lines: list[Line] = [((group.title, "primary"),)]
    for label, value in group.facts:
        name = (f"{label:<{_LABEL}}", "muted")
        if width_of(value) <= width - _LABEL or len(value) != 1:
            lines.append((name, *value))
            continue
        text, style = value[0]
        for number, row in enumerate(wrap(text, width - _LABEL)):
            lines.append(((name[0] if number == 0 else " " * _LABEL, "muted"), (row, style)))
    return lines


def _processes(card: CardView, width: int) -> list[Line]:
    glyphs, reading = card.glyphs, card.reading
    if reading.processes_hidden:
        return [(("Processes", "primary"),), (("The driver does not tell who is on the card.", "muted"),)]
    if not reading.processes:
        return [(("Processes", "primary"),), (("none", "muted"),)]
    who = min(max((len(_holder(process, glyphs)) for process in reading.processes), default=0), max(width - 45, 12))
    return [
        (("Processes", "primary"),),
        *(_process(process, card, who, width) for process in reading.processes),
    ]


def _process(process: GpuProcess, card: CardView, who: int, width: int) -> Line:
    """Number, user, whose part it is, memory, age, and the command as far as it goes."""
    glyphs = card.glyphs
    size = "n/a" if process.memory_bytes is None else f"{gib(process.memory_bytes)} GiB"
    row: Line = (
        (f"{process.pid:>8}  {glyphs.fit(printable(process.user or 'n/a'), 8)}  ", "muted"),
        (f"{glyphs.fit(_holder(process, glyphs), who)}  ", "text"),
        (f"{size:>9}  ", "text"),
        (f"{facts.age(process, card.at) or 'n/a':>6}  ", "muted"),
    )
    return (*row, (glyphs.cut(printable(process.command or process.name), max(width - width_of(row), 0)), "faint"))


def _holder(process: GpuProcess, glyphs: Glyphs) -> str:
    part = "" if process.mig is None else f"MIG {process.mig}"
    name = facts.process_in_short(process, glyphs) if process.engine else printable(process.name)
    return joined((name, part), glyphs.dot)


def _slices(card: CardView, width: int) -> list[Line]:
    if not card.reading.mig:
        return []
    return [(), (("MIG devices", "primary"),), *(_slice(one, card.glyphs, width) for one in card.reading.mig)]


def _slice(one: MigInstance, glyphs: Glyphs, width: int) -> Line:
    number = str(one.gpu_instance) if one.compute_instance is None else f"{one.gpu_instance}/{one.compute_instance}"
    cores = "n/a" if one.multiprocessors is None else str(one.multiprocessors)
    row: Line = (
        (f"{number:>5}  ", "strong"),
        (f"{glyphs.fit(printable(one.name or 'n/a'), 16)}  ", "text"),
        (f"{gib(one.memory_used_bytes)} of {gib(one.memory_bytes)} GiB  {cores} multiprocessors  ", "text"),
    )
    return (*row, (glyphs.cut(printable(one.uuid or ""), max(width - width_of(row), 0)), "faint"))


def _events(snapshot: Snapshot, index: int, width: int, glyphs: Glyphs) -> list[Line]:
    """The last events of the card, newest first."""
    mine = [event for event in reversed(snapshot.events) if event.gpu == index][:_EVENTS]
    styles = {Severity.ERROR: "error", Severity.WARNING: "warning"}
    lines: list[Line] = [(), (("Events", "primary"),)] if mine else []
    for event in mine:
        sign = {Severity.ERROR: glyphs.blocked, Severity.WARNING: glyphs.caution}.get(event.severity, glyphs.info)
        for line in wrap(f"{sign} {facts.happened(event, snapshot.at)}", width):
            lines.append(((line, styles.get(event.severity, "muted")),))
    return lines
