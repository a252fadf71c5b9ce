"""What a failure means and the way out, below the line of the log that says it."""

from dataclasses import dataclass

from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs, wrap
from gpudeck.widgets.lines import Line


@dataclass(frozen=True, slots=True)
class FailureView:
    """All text may hold foreign words."""

    meaning: str
    fix: str = ""
    mendable: bool = False  # a key puts the mended plan on the board


def failure_rows(view: FailureView, glyphs: Glyphs, width: int, indent: int) -> list[Line]:
    """The meaning, and behind an arrow the fix, with its key where one does it."""
    label = f"{glyphs.arrow} "
    inner = max(width - indent - len(label) - 1, 1)
    blank = (" " * indent, "")
    rows: list[Line] = [(blank, ("  ", ""), (text, "text")) for text in wrap(printable(view.meaning), inner)]
    fix = wrap(printable(view.fix), inner - 3) if view.fix else []
    for number, text in enumerate(fix):
        key = (("  ", ""), ("f", "primary strong")) if view.mendable and number == len(fix) - 1 else ()
        rows.append((blank, (label if number == 0 else " " * len(label), "accent"), (text, "muted"), *key))
    return rows
