"""The last resort where a terminal shows ASCII alone: whatever else would be drawn becomes ASCII of the same width.

Widgets draw with `Glyphs.ascii()` there; this catches foreign text (a log, an answer) and what Textual draws itself.
"""

import unicodedata
from functools import lru_cache

from rich.cells import get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_ALIKE = str.maketrans(
    {"·": "-", "•": "*", "×": "x", "→": ">", "…": "~", "“": '"', "”": '"', "‘": "'", "’": "'"}
    | {
        **dict.fromkeys("─━┄┅╌–—", "-"),
        **dict.fromkeys("│┃┊┆", "|"),
        **dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼┏┓┗┛", "+"),
        **dict.fromkeys("█▓", "#"),
        **dict.fromkeys("▒░", "."),
        # A scroll bar's ends: the ground shows where it is.
        **dict.fromkeys("▁▂▃▄▅▆▇▉▊▋▌▍▎▏", " "),
    }
)


class AsciiOnly(LineFilter):
    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        return [
            segment if segment.text.isascii() else Segment(in_ascii(segment.text), segment.style, segment.control)
            for segment in segments
        ]


@lru_cache(1024)
def in_ascii(text: str) -> str:
    """The text without anything but ASCII, in as many cells: letters lose their marks, the rest becomes `?`."""
    return "".join(character if character.isascii() else _plain(character) for character in text.translate(_ALIKE))


def _plain(character: str) -> str:
    size = get_character_cell_size(character)
    letter = unicodedata.normalize("NFKD", character)[0]
    return letter if letter.isascii() and letter.isprintable() and size == 1 else "?" * size
