"""Results as text: a table for each workload, bars, and what each placement is good for.  Also as CSV and Markdown."""

import csv
import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpudeck.services.bench.compare import Group, groups, strengths
from gpudeck.services.bench.stages import balance_of
from gpudeck.services.bench.types import Generator, Level, Result
from gpudeck.services.bench.words import (
    NOTHING,
    amount,
    duration,
    level_words,
    limits_words,
    model_words,
    percent,
    placement_words,
    queue_words,
)
from gpudeck.services.text import printable

COLUMNS = (
    "load", "first token p50", "first token p99", "between tokens p50", "between tokens p99", "whole p50", "whole p99",
    "queue mean", "queue p99", "tokens/s", "failed", "tokens/J", "tokens/s of one", "estimated", "its error", "limits",
)  # fmt: skip
_DECISIVE = ("load", "first token p50", "first token p99", "tokens/s", "tokens/s of one", "tokens/J", "limits")
DIFFERENT = "The tables below are of different workloads or models: figures of one say nothing beside those of another."
LOADS = (
    "Some of them differ only in who made the load, which reads a stream at another pace: measured again with "
    "--load own they compare."
)
_BAR = 30  # cells
_WIDTH = 100  # columns of a sentence


def level_row(result: Result, level: Level) -> tuple[str, ...]:
    """One level in the order of COLUMNS."""
    first, between, whole = level.first_token, level.between_tokens, level.end_to_end
    return (
        level_words(result, level) + (" (cut)" if level.partial else ""),
        duration(first.p50 if first else None),
        duration(first.p99 if first else None),
        duration(between.p50 if between else None),
        duration(between.p99 if between else None),
        duration(whole.p50 if whole else None),
        duration(whole.p99 if whole else None),
        duration(level.queue.mean if level.queue else None),
        queue_words(level),
        amount(level.tokens_per_s),
        f"{level.failed}/{level.wanted}" if level.failed else "0",
        amount(level.tokens_per_joule),
        amount(level.decode_tokens_per_s),
        amount(level.estimated),
        percent(level.estimate_error),
        limits_words(result, level),
    )


def result_lines(result: Result) -> list[str]:
    """One result in full: its table, what the cards did, what went wrong, how the stages wait."""
    lines = [
        f"{model_words(result)}: {placement_words(result)}",
        f"  {result.workload.words()}; {_versions(result)}, {result.at}",
        *(f"  {line}" for line in table(figures(result))),
    ]
    for level in result.levels:
        cards = "; ".join(_card_words(level, place) for place in range(len(level.cards)))
        if cards:
            lines += _wrapped(f"{level_words(result, level)}: {cards}")
        for why, count in level.errors.items():
            lines += _wrapped(f"{count} failed: {printable(why)}")
    limits = result.limits
    lines += _wrapped(
        f"Limits: first token {duration(limits.first_token)} in the middle, {duration(limits.p99)} at p99."
    )
    balance = balance_of(result)
    if balance is not None:
        lines += _wrapped(balance.sentence())
    for note in result.notes:
        lines += _wrapped(printable(note))
    if result.partial:
        lines += _wrapped("It was cancelled: what had come by then is kept.")
    return lines


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def figures(result: Result) -> list[tuple[str, ...]]:
    """One result's figures as rows, its levels as columns: that fits on a narrow screen."""
    return list(zip(COLUMNS, *(level_row(result, level) for level in result.levels), strict=True))


def _versions(result: Result) -> str:
    versions = dict.fromkeys(target.vllm_version or "of unknown version" for target in result.targets)
    return f"vLLM {', '.join(map(printable, versions))}"


def _card_words(level: Level, place: int) -> str:
    card = level.cards[place]
    words = [
        f"{card.utilization:.0f} % busy" if card.utilization is not None else "",
        f"{card.memory_bytes / (1 << 30):.1f} GiB" if card.memory_bytes is not None else "",
        f"{card.power_w:.0f} W" if card.power_w is not None else "",
    ]
    return f"GPU {card.gpu} {', '.join(filter(None, words)) or 'tells nothing'}"


def comparison_lines(results: Sequence[Result], *, plain: bool = False) -> list[str]:
    """All results that are comparable beside each other, workload by workload; `plain` draws bars of #."""
    found = groups(results)
    lines = [DIFFERENT] if len(found) > 1 else []
    if len({(group.model, replace(group.workload, generator=Generator.OWN)) for group in found}) < len(found):
        lines.append(LOADS)
    lines += [""] if lines else []
    for group in found:
        lines += [*_group_lines(group, plain=plain), ""]
    return lines[:-1]


def _group_lines(group: Group, *, plain: bool) -> list[str]:
    results, names = group.results, names_in(group)
    lines = [f"{model_words(results[0])}, {group.workload.words()}", *table(comparison(group))]
    if len(results) > 1:
        for title, figure, words in _PLOTS:
            lines += ["", title, *_bars(group, figure, words, plain=plain)]
        lines.append("")
        lines += [
            f"{names[place]}: "
            + (f"best for {each.words}" if each.words else "another placement is as good or better at everything")
            for place, each in enumerate(strengths(group))
        ]
    return lines


def comparison(group: Group) -> list[tuple[str, ...]]:
    """The figures that decide, a row for each placement and level, under their titles."""
    places = [COLUMNS.index(name) for name in _DECISIVE]
    rows = [
        (name if number == 0 else "", *(row[place] for place in places))
        for name, result in zip(names_in(group), group.results, strict=True)
        for number, row in enumerate(level_row(result, level) for level in result.levels)
    ]
    return [("placement", *_DECISIVE), *rows]


def names_in(group: Group) -> list[str]:
    """What tells the results of a group apart: placements, and where they differ machine and version of vLLM too."""
    machines = {result.box for result in group.results}
    versions = {_versions(result) for result in group.results}
    return [
        ", ".join(
            (
                placement_words(result),
                *([_versions(result)] if len(versions) > 1 else []),
                *([printable(result.box)] if len(machines) > 1 else []),
            )
        )
        for result in group.results
    ]


def _bars(
    group: Group, figure: Callable[[Level], float | None], words: Callable[[float], str], *, plain: bool
) -> list[str]:
    """One bar for each placement and level, level by level, so that neighbours compare."""
    bars = [
        (level.level, name, level_words(result, level), value)
        for name, result in zip(names_in(group), group.results, strict=True)
        for level in result.levels
        if (value := figure(level))
    ]
    if not bars:
        return ["nothing was told of it"]
    most = max(value for *_, value in bars)
    return table(
        [
            (load, name, bar(value / most, _BAR, plain=plain), words(value))
            for _, name, load, value in sorted(bars, key=lambda entry: entry[0])
        ]
    )


def _first_p99(level: Level) -> float | None:
    return level.first_token.p99 if level.first_token is not None else None


_PLOTS: tuple[tuple[str, Callable[[Level], float | None], Callable[[float], str]], ...] = (
    ("Tokens a second: more is better", lambda level: level.tokens_per_s, amount),
    ("First token, p99: less is better", _first_p99, duration),
    ("Tokens a joule: more is better", lambda level: level.tokens_per_joule, amount),
)


def bar(share: float, cells: int, *, plain: bool = False) -> str:
    """A bar of so many cells at most, in eighths of a cell, or in whole ones of #."""
    if plain:
        return "#" * max(round(min(share, 1.0) * cells), 1)
    eighths = max(round(min(share, 1.0) * cells * 8), 1)
    return "█" * (eighths // 8) + ("▏▎▍▌▋▊▉"[eighths % 8 - 1] if eighths % 8 else "")


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as aligned columns, two blanks apart; figures stand at the right edge of theirs."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def as_csv(results: Sequence[Result]) -> str:
    """A row for each level, in plain units: seconds, watts, tokens."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        (
            "id", "at", "model", "placement", "workload", "vllm_version", "level", "completed", "failed", "seconds",
            *(f"{name}_{share}" for name in _SPREADS for share in ("mean", "p50", "p90", "p95", "p99")),
            "queue_mean", "queue_p99", "output_tokens_per_s", "decode_tokens_per_s", "tokens_per_joule",
            "joules", "estimated_tokens_per_s", "estimate_error", "within_limits", "partial",
        )
    )  # fmt: skip
    for result in results:
        for level in result.levels:
            spreads = [getattr(level, name) for name in _SPREADS]
            writer.writerow(
                _cell(value)
                for value in (
                    result.id, result.at, result.model, placement_words(result), result.workload.words(),
                    _versions(result), level.level, level.completed, level.failed, level.seconds,
                    *(
                        getattr(spread, share) if spread else None
                        for spread in spreads
                        for share in ("mean", "p50", "p90", "p95", "p99")
                    ),
                    *((level.queue.mean, level.queue.p99) if level.queue else (None, None)),
                    level.tokens_per_s, level.decode_tokens_per_s, level.tokens_per_joule, level.joules,
                    level.estimated, level.estimate_error, level.within(result.limits), level.partial,
                )
            )  # fmt: skip
    return out.getvalue()


_SPREADS = ("first_token", "between_tokens", "each_token", "end_to_end")


def _cell(value: object) -> str:
    """A spreadsheet takes what begins with = + - @ for a formula, and model names are foreign."""
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value[:1] in "=+-@\t\r" else value
    return str(value).lower() if isinstance(value, bool) else f"{value:.6g}" if isinstance(value, float) else str(value)


def as_markdown(results: Sequence[Result]) -> str:
    """A table for each workload."""
    found = groups(results)
    lines = [f"{DIFFERENT}\n"] if len(found) > 1 else []
    for group in found:
        lines.append(f"## {_plain(model_words(group.results[0]))}\n")
        lines.append(f"{_plain(group.workload.words())}\n")
        lines.append(_markdown_row(("placement", *COLUMNS)))
        lines.append(_markdown_row(("---",) * (len(COLUMNS) + 1)))
        lines += [
            _markdown_row((placement_words(result), *level_row(result, level)))
            for result in group.results
            for level in result.levels
        ]
        lines.append("")
        lines += [
            f"- {_plain(placement_words(each.result))}: best for {each.words}\n"
            for each in strengths(group)
            if each.words
        ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell) if cell != NOTHING else cell for cell in cells)} |"


def _plain(text: str) -> str:
    """Foreign text that is no markup: what Markdown would take for it is escaped."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in text)
