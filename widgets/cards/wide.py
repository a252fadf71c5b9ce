"""A card on one row of a wide pane, with all that is measured, and a row for each process; pure."""

from gpudeck.services.box.types import GpuProcess
from gpudeck.services.text import printable
from gpudeck.widgets.cards import facts
from gpudeck.widgets.cards.rows import INDENT, MOST_PROCESSES, CardView, engine_mark, meter, warning_of
from gpudeck.widgets.glyphs import card_name, gib
from gpudeck.widgets.lines import Line, width_of

WIDE_WIDTH = 120  # cells from which it all stands on one row


def wide(card: CardView, width: int) -> list[Line]:
    """Name, utilisation with its past, memory, temperature, power, links and brakes; below, who holds memory."""
    glyphs, gpu, reading = card.glyphs, card.gpu, card.reading
    spare = width - WIDE_WIDTH
    name = glyphs.fit(card_name(printable(gpu.name)), min(26, 18 + spare // 8))
    head: Line = (card.edge, card.number, (f"{name} ", "strong"))
    if reading.fault is not None:
        sentence = glyphs.cut(facts.ailment(reading, card.at), width - width_of(head) - 2)
        return [(*head, (f"{glyphs.blocked} {sentence}", "error"))]
    bar, trend = min(24, 10 + spare // 6), min(32, 14 + spare // 4)
    utilization = reading.utilization_percent
    row: Line = (
        *head,
        *meter(None if utilization is None else utilization / 100, bar, "primary", glyphs),
        (f" {facts.percent(utilization):>5} ", "text"),
        (glyphs.sparkline(card.history, trend), "primary"),
        ("  ", ""),
        *meter(facts.share(reading, gpu), bar, "soft", glyphs),
        (f" {gib(reading.memory_used_bytes):>5} of {gib(gpu.memory_bytes)} GiB", "text"),
        (f"  {facts.temperature(reading, glyphs):>6}", "text"),
        (f"  {facts.power(reading, gpu):>12}", "text"),
    )
    return [(*row, *_remarks(card, width - width_of(row))), *_holders(card, width)]


def _remarks(card: CardView, room: int) -> Line:
    """What is to be warned of, else where the card's links lead."""
    glyphs = card.glyphs
    warning, style = warning_of(card)
    if warning:
        return (("  ", ""), (glyphs.cut(warning, room - 2), style)) if room > 4 else ()
    return (("  ", ""), (glyphs.cut(card.links, room - 2), "faint")) if room > 8 and card.links else ()


def _holders(card: CardView, width: int) -> list[Line]:
    processes = card.reading.processes
    shown = processes if len(processes) <= MOST_PROCESSES else processes[: MOST_PROCESSES - 1]
    rows = [_holder(card, process, width) for process in shown]
    if len(shown) < len(processes):
        rows.append((card.edge, (f"{INDENT[1:]}{card.glyphs.branch} {len(processes) - len(shown)} more", "muted")))
    return rows


def _holder(card: CardView, process: GpuProcess, width: int) -> Line:
    """Memory, engine and rank or name, process number, user, age, command."""
    glyphs = card.glyphs
    size = "n/a" if process.memory_bytes is None else f"{gib(process.memory_bytes)} GiB"
    who = facts.process_in_short(process, glyphs) if process.engine else printable(process.name)
    row: Line = (
        card.edge,
        (f"{INDENT[1:]}{glyphs.branch} ", "faint"),
        (f"{size:>9}  ", "text"),
        *engine_mark(card, process),
        (f"{glyphs.fit(who, 30 - width_of(engine_mark(card, process)))}  ", "text" if process.engine else "muted"),
        (f"{process.pid:>8}  {glyphs.fit(printable(process.user or ''), 10)}  ", "muted"),
        (f"{facts.age(process, card.at):>8}  ", "muted"),
    )
    command = glyphs.cut(printable(process.command or process.name), max(width - width_of(row), 0))
    return (*row, (command, "faint"))
