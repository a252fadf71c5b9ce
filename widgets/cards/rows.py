"""One card as rows of text, at four densities; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len

from gpudeck.services.box.types import Box, BoxEvent, Gpu, GpuProcess, Reading, Severity
from gpudeck.services.text import printable
from gpudeck.widgets.cards import facts
from gpudeck.widgets.glyphs import Glyphs, card_name, gib, joined, wrap
from gpudeck.widgets.lines import Line, engine_style, spread, width_of

ONE_ROW_WIDTH = 70  # cells that a card needs to be told on a single row
ROOM_FOR_WORDS = 36  # cells below which figures stand without their words
MOST_PROCESSES = 4
_WARNING = 12  # cells of a warning for which a short row makes room
INDENT = "    "


@dataclass(frozen=True, slots=True)
class CardView:
    """All that the rows of one card are made from.  `history` holds past utilisation, 0 to 1, newest last."""

    box: Box
    gpu: Gpu
    reading: Reading
    history: Sequence[float | None]
    chosen: bool
    glyphs: Glyphs
    at: float = 0.0  # when it was read, seconds since the epoch
    links: str = ""  # where its NVLinks lead, or its place on the bus
    colours: Mapping[str, int] = field(default_factory=dict)  # of the engines, by name
    event: BoxEvent | None = None  # what befell it last, where that is still to be told

    @property
    def edge(self) -> tuple[str, str]:
        return (self.glyphs.edge if self.chosen else " ", "primary")

    @property
    def number(self) -> tuple[str, str]:
        return (f"{self.gpu.index:<2} ", "strong")


def meter(fraction: float | None, width: int, style: str, glyphs: Glyphs) -> Line:
    """A bar; an unknown fraction leaves it empty."""
    filled, rest = glyphs.bar(fraction, width)
    return ((filled, style), (rest, "faint"))


def full(card: CardView, width: int) -> list[Line]:
    """A card on about five rows: who it is, what it does, what it holds, how it fares, and for whom."""
    glyphs, gpu, reading = card.glyphs, card.gpu, card.reading
    facts_right = joined(
        (
            str(gpu.compute_capability),
            card.links,
        ),
        glyphs.dot,
    )
    name_room = max(8, width - 5 - len(facts_right) - 1)
    name = glyphs.cut(card_name(printable(gpu.name)), name_room)
    rows: list[Line] = [
        spread(
            (card.edge, card.number, (name, "strong")),
            ((glyphs.cut(facts_right, width - 5 - len(name) - 1), "muted"),),
            width,
        )
    ]
    rows += _ails(card, width)
    memory = facts.memory(reading, gpu)
    value_width = 18
    if width < ROOM_FOR_WORDS:
        memory, value_width = f"{gib(reading.memory_used_bytes)}/{gib(gpu.memory_bytes)}", 11
    bar_width = min(32, max(2, width - len(INDENT) - 5 - 2 - value_width))
    trend_width = max(0, width - len(INDENT) - 5 - bar_width - 2 - 7)
    utilization = reading.utilization_percent
    rows.append(
        (
            card.edge,
            (INDENT[1:], ""),
            ("util ", "muted"),
            *meter(None if utilization is None else utilization / 100, bar_width, "primary", glyphs),
            (f"  {facts.percent(utilization):<5}  ", "text"),
            # The newest stands at the edge, as on a recorder.
            (glyphs.sparkline(card.history, min(trend_width, 32)).rjust(trend_width), "primary"),
        )
    )
    rows.append(
        (
            card.edge,
            (INDENT[1:], ""),
            ("mem  ", "muted"),
            *meter(facts.share(reading, gpu), bar_width, "soft", glyphs),
            (f"  {memory}", "text"),
        )
    )
    health = joined((facts.temperature(reading, glyphs), facts.power(reading, gpu)), glyphs.dot)
    rows.append((card.edge, (INDENT[1:] + health, "muted"), *_throttle(card, width - len(INDENT) - len(health))))
    return [*rows, *_processes(card, width)]


def one_row(card: CardView, width: int) -> list[Line]:
    """A card on a single row of at least `ONE_ROW_WIDTH` cells."""
    glyphs, gpu, reading = card.glyphs, card.gpu, card.reading
    spare = width - ONE_ROW_WIDTH
    name_width = min(24, 15 + spare // 4)
    bar_width = min(16, 6 + spare // 4)
    name = glyphs.fit(card_name(printable(gpu.name)), name_width)
    head: Line = (card.edge, card.number, (f"{name} ", "strong"))
    if reading.fault is not None:
        room = width - width_of(head) - 2
        return [(*head, (f"{glyphs.blocked} {glyphs.cut(facts.ailment(reading, card.at), room)}", "error"))]
    utilization = reading.utilization_percent
    row: Line = (
        *head,
        *meter(None if utilization is None else utilization / 100, bar_width, "primary", glyphs),
        (f" {facts.percent(utilization):>5} ", "text"),
        *meter(facts.share(reading, gpu), bar_width, "soft", glyphs),
        (f" {gib(reading.memory_used_bytes):>5}/{gib(gpu.memory_bytes):<5} ", "text"),
        (f"{facts.temperature(reading, glyphs):>6} ", "muted"),
    )
    drawn: Line = ((f"{'n/a' if reading.power_w is None else format(reading.power_w, '.0f'):>4} W ", "muted"),)
    # A warning that does not fit is worth more than the power.
    warning = min(cell_len(warning_of(card)[0]) + 1, _WARNING)
    if warning == 1 or width_of((*row, *drawn)) + warning <= width:
        row = (*row, *drawn)
    return [(*row, *_remarks(card, width - width_of(row)))]


def bare_row(card: CardView, width: int) -> list[Line]:
    """A card on a single row of a narrow pane: who it is, what it does, what it holds."""
    glyphs, gpu, reading = card.glyphs, card.gpu, card.reading
    memory = f"{gib(reading.memory_used_bytes)}/{gib(gpu.memory_bytes)}"
    spare = width - 4 - 7 - 1 - len(memory)  # for the name and the bar
    bar_width = min(10, spare - 15) if spare >= 18 else 0
    name = glyphs.fit(card_name(printable(gpu.name)), spare - bar_width)
    if reading.fault is not None:
        name = glyphs.cut(card_name(printable(gpu.name)), 14)
        room = width - 4 - len(name) - 3
        fault = f" {glyphs.blocked} {glyphs.cut(facts.ailment(reading, card.at), room)}"
        return [(card.edge, card.number, (name, "strong"), (fault, "error"))]
    brake = glyphs.caution if reading.throttle_reasons or card.event or facts.overdue(reading, card.at) else " "
    return [
        (
            card.edge,
            card.number,
            (name, "strong"),
            (brake, "warning"),
            (f"{facts.percent(reading.utilization_percent):>5} ", "text"),
            *meter(facts.share(reading, gpu), bar_width, "soft", glyphs),
            (f" {memory}", "text"),
        )
    ]


def two_rows(card: CardView, width: int) -> list[Line]:
    """A card on two rows, for a pane too narrow for one."""
    glyphs, gpu, reading = card.glyphs, card.gpu, card.reading
    health = joined((facts.temperature(reading, glyphs), f"{facts.power(reading, gpu)}"), glyphs.dot)
    name = glyphs.cut(card_name(printable(gpu.name)), max(6, width - 5 - len(health) - 1))
    first: Line = (card.edge, card.number, (name, "strong"))
    if reading.fault is not None:
        sentence = glyphs.cut(facts.ailment(reading, card.at), width - len(INDENT) - 2)
        return [first, (card.edge, (f"{INDENT[1:]}{glyphs.blocked} {sentence}", "error"))]
    remarks = _remarks(card, width - width_of(first) - len(health) - 3)
    top = spread((*first, (" ", ""), *remarks), ((health, "muted"),), width)
    memory = f"{gib(reading.memory_used_bytes)}/{gib(gpu.memory_bytes)}"
    bar_width = max(3, (width - 4 - 7 - 1 - len(memory) - 1) // 2)
    utilization = reading.utilization_percent
    bottom: Line = (
        card.edge,
        (INDENT[1:], ""),
        *meter(None if utilization is None else utilization / 100, bar_width, "primary", glyphs),
        (f" {facts.percent(utilization):>5} ", "text"),
        *meter(facts.share(reading, gpu), bar_width, "soft", glyphs),
        (f" {memory}", "text"),
    )
    return [top, bottom]


def _ails(card: CardView, width: int) -> list[Line]:
    """The card's fault in full; that it answers slowly, and what befell it last, in a row each."""
    glyphs = card.glyphs
    room = width - len(INDENT) - 2
    fault = facts.ailment(card.reading, card.at)
    rows: list[Line] = [
        (card.edge, (f"{INDENT[1:]}{' ' if number else glyphs.blocked} {line}", "error"))
        for number, line in enumerate(wrap(fault, room) if fault else ())
    ]
    late = facts.overdue(card.reading, card.at)
    if late and not fault:
        rows.append((card.edge, (f"{INDENT[1:]}{glyphs.caution} {late} old: the card answers slowly", "warning")))
    if card.event is not None:
        sign, style = event_sign(card.event, glyphs)
        text = glyphs.cut(facts.happened(card.event, card.at), room)
        rows.append((card.edge, (f"{INDENT[1:]}{sign} {text}", style)))
    return rows


def event_sign(event: BoxEvent, glyphs: Glyphs) -> tuple[str, str]:
    """The sign of an event, and its style."""
    return {
        Severity.ERROR: (glyphs.blocked, "error"),
        Severity.WARNING: (glyphs.caution, "warning"),
    }.get(event.severity, (glyphs.info, "muted"))


def warning_of(card: CardView) -> tuple[str, str]:
    """What a short row warns of, and its style: a slow answer, what befell the card, a brake on its clocks."""
    glyphs = card.glyphs
    if late := facts.overdue(card.reading, card.at):
        return f"{glyphs.caution} {late} old", "warning"
    if card.event is not None:
        sign, style = event_sign(card.event, glyphs)
        xid = card.event.xid
        return f"{sign} {printable(card.event.text) if xid is None else f'Xid {xid}'}", style
    reasons = ", ".join(map(printable, card.reading.throttle_reasons))
    return (f"{glyphs.caution} {reasons}", "warning") if reasons else ("", "")


def _throttle(card: CardView, room: int) -> Line:
    if not card.reading.throttle_reasons:
        return ()
    reasons = ", ".join(map(printable, card.reading.throttle_reasons))
    text = card.glyphs.cut(f"{card.glyphs.caution} {reasons}", room - 3)
    return ((f" {card.glyphs.dot} ", "muted"), (text, "warning")) if text else ()


def _remarks(card: CardView, room: int) -> Line:
    """What a short row still tells: a warning first, then who uses the card."""
    if room < 3:
        return ()
    glyphs = card.glyphs
    warning, style = warning_of(card)
    if warning:
        warning = glyphs.cut(warning, room - 1) + " "
    rest = room - cell_len(warning)
    return ((warning, style), (glyphs.cut(facts.holders(card.reading), rest) if rest > 2 else "", "muted"))


def engine_mark(card: CardView, process: GpuProcess) -> Line:
    """A block in the engine's colour, as the engine list has it."""
    colour = card.colours.get(process.engine or "")
    return ((card.glyphs.weights, engine_style(colour)), (" ", "")) if colour is not None else ()


def _processes(card: CardView, width: int) -> list[Line]:
    glyphs, processes = card.glyphs, card.reading.processes
    shown = processes if len(processes) <= MOST_PROCESSES else processes[: MOST_PROCESSES - 1]
    rows = []
    for process in shown:
        size = "n/a" if process.memory_bytes is None else f"{gib(process.memory_bytes)} GiB"
        room = width - len(INDENT) - 2 - len(size) - 2 - width_of(engine_mark(card, process))
        who = glyphs.cut(facts.process_in_short(process, glyphs), room)
        left: Line = (
            card.edge,
            (f"{INDENT[1:]}{glyphs.branch} ", "faint"),
            *engine_mark(card, process),
            (who, "text" if process.engine else "muted"),
        )
        rows.append(spread(left, ((size, "muted"),), width))
    if len(shown) < len(processes):
        hidden = f"{INDENT[1:]}{glyphs.branch} {len(processes) - len(shown)} more"
        rows.append((card.edge, (hidden, "muted")))
    return rows
