"""What an engine that serves counts of itself, in rows below it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.cells import cell_len

from gpudeck.services.metrics.types import EngineRates, Timing
from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs, joined, wrap
from gpudeck.widgets.lines import Line, width_of

_BAR = 12
_MOST_OUTCOMES = 4
# What the histograms are called here: the words of vLLM's documentation, without abbreviations.
_TIMINGS: Mapping[Timing, str] = {
    Timing.FIRST_TOKEN: "first token",
    Timing.INTER_TOKEN: "token to token",
    Timing.END_TO_END: "whole answer",
    Timing.QUEUE: "queue",
}


@dataclass(frozen=True, slots=True)
class MetricsView:
    """The figures; or in their place one sentence on why there are none."""

    rates: EngineRates | None = None
    trouble: str = ""


def metrics_rows(view: MetricsView, glyphs: Glyphs, width: int, indent: int, *, chosen: bool) -> list[Line]:
    """One row; of the chosen engine also the latencies, what became of the requests, or why nothing is told."""
    blank = (" " * indent, "")
    inner = max(width - indent - 1, 1)
    if view.trouble:
        return [] if not chosen else [(blank, (text, "muted")) for text in wrap(printable(view.trouble), inner)]
    rates = view.rates
    if rates is None:
        return []
    row: Line = (blank,)
    if rates.latest.kv_cache_usage is not None:
        filled, rest = glyphs.bar(rates.latest.kv_cache_usage, _BAR)
        row = (*row, (filled, "accent"), (rest, "faint"), (f" {rates.latest.kv_cache_usage:4.0%} KV cache  ", "text"))
    rows: list[Line] = [(*row, (glyphs.cut(joined(_now(rates), glyphs.dot), max(width - width_of(row), 0)), "muted"))]
    if chosen:
        rows += [(blank, (text, "muted")) for text in _packed(list(_lately(rates)), inner, f" {glyphs.dot} ")]
    return rows


def _now(rates: EngineRates) -> Iterator[str]:
    latest = rates.latest
    if latest.running is not None:
        yield f"{latest.running:,} running"
    if latest.waiting is not None:
        yield f"{latest.waiting:,} waiting"
    if rates.generation_tokens_per_s is not None:
        yield f"{rates.generation_tokens_per_s:,.0f} tokens/s out"
    if rates.prompt_tokens_per_s is not None:
        yield f"{rates.prompt_tokens_per_s:,.0f} in"


def _lately(rates: EngineRates) -> Iterator[str]:
    """What the last minutes were like; nothing where nobody asked anything."""
    for timing, words in _TIMINGS.items():
        found = rates.percentiles.get(timing)
        if found:
            yield f"{words} {duration(found[50])}, 95 % {duration(found[95])}, 99 % {duration(found[99])}"
    if rates.prefix_hit_rate is not None:
        yield f"prefix cache hits {rates.prefix_hit_rate:.0%}"
    if rates.preemptions:
        yield f"{rates.preemptions:,} preempted"
    ended = sorted(((count, reason) for reason, count in rates.outcomes.items() if count), reverse=True)
    if ended:
        yield "ended: " + ", ".join(f"{count:,} {printable(reason)}" for count, reason in ended[:_MOST_OUTCOMES])
    if rates.span >= 1:
        yield f"over {span(rates.span)}"


def duration(seconds: float) -> str:
    """A latency in three figures at most: `18 ms`, `0.42 s`, `4.1 s`, `75 s`."""
    if seconds < 0.1:
        return f"{seconds * 1e3:.{0 if seconds >= 0.01 else 1}f} ms"
    return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s" if seconds < 10 else f"{seconds:,.0f} s"


def span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _packed(facts: list[str], width: int, dot: str) -> Iterator[str]:
    """Facts on as few rows as they need, none broken unless it is wider than a row."""
    line = ""
    for fact in facts:
        if line and cell_len(line) + cell_len(dot) + cell_len(fact) <= width:
            line += dot + fact
            continue
        if line:
            yield from wrap(line, width)
        line = fact
    if line:
        yield from wrap(line, width)
