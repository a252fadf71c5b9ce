"""Only what changed goes to the terminal.

Textual draws whatever it draws anew from the left edge of the widget on: a figure that moves costs its whole row, and a
footer that is made again costs itself, over SSH as well.  `Repaint` knows what the terminal shows and lets through the
cells that differ, with the shortest moves and colour changes; what is not a frame passes as it is.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from rich.cells import cell_len

# A frame is moves, and behind each a row's pieces: colour, text, and rest or the line's end (textual._compositor).
_PLACE = re.compile(r"\x1b\[(\d+);(\d+)H")
_REST = "\x1b[0m"
_PIECE = re.compile(r"(?:\x1b\[([\d;]*)m)?([^\x00-\x1f\x7f-\x9f]*)(\n?)")
# What moves no cell: modes but for the alternate screen, and bells and titles and clipboards.
_HARMLESS = re.compile(r"(?:\x1b\[\?(?!1049|1047|47)\d+(?:;\d+)*(?:[hl]|\$p)|\x07|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\))+")
_SYNC_BEGIN, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"

_SHORT_GAP = 4  # cells that are cheaper to write again than to jump over: a jump is four bytes

Style = str  # the parameters of an SGR sequence: "1;38;5;188;48;5;16"; "" for none


@dataclass(frozen=True, slots=True)
class Piece:
    """A text in one style, as cells."""

    text: str
    style: Style
    width: int
    narrow: bool  # each character takes one cell, on which all terminals agree
    chars: list[str | None]
    styles: list[Style]
    ends_line: bool


Run = tuple[int, int, list[Piece]]  # row and column, from 0, and what stands from there on


class Repaint:
    """Made for one terminal: everything that is written to it goes `through`."""

    def __init__(self) -> None:
        self._chars: list[list[str | None]] = []  # what each cell shows, None where that is not known
        self._styles: list[list[Style]] = []
        self._pen: Style | None = None  # what the terminal writes with, None where that is not known
        self._at: tuple[int, int] | None = None  # its cursor (row, column), from 0
        self._held = ""  # the beginning of a synchronised update that has nothing in it so far
        self._out: list[str] = []

    def forget(self) -> None:
        """The terminal may show anything from now on."""
        self._chars.clear()
        self._styles.clear()
        self._pen = self._at = None

    def through(self, data: str) -> str:
        """What has the effect of `data` on this terminal; may be empty."""
        if data == _SYNC_BEGIN:
            self._held = data
            return ""
        if data == _SYNC_END and self._held:
            self._held = ""
            return ""
        runs = _runs(data)
        if runs is None:
            told, self._held = self._held + data, ""
            if _HARMLESS.fullmatch(data) is None:
                # It is to meet a pen at rest, and may leave anything on the screen.
                told = ("" if self._pen in (None, "") else _REST) + told
                self.forget()
            return told
        self._draw(runs)
        told = "".join(self._out)
        self._out.clear()
        if told:
            told, self._held = self._held + told, ""
        return told

    def _draw(self, runs: list[Run]) -> None:
        for row, column, pieces in runs:
            for piece in pieces:
                if piece.text:
                    self._write(row, column, piece)
                    column += piece.width
                if piece.ends_line:
                    row, column = row + 1, 0
        # Where the cursor rests is where an input method shows what is being typed.
        if self._at != (row, column):
            self._move(row, column)

    def _write(self, row: int, column: int, piece: Piece) -> None:
        """Write what of the piece is not there already."""
        while len(self._chars) <= row:
            self._chars.append([])
            self._styles.append([])
        chars, styles = self._chars[row], self._styles[row]
        behind = column + piece.width
        if len(chars) < behind:
            styles.extend([""] * (behind - len(chars)))
            chars.extend([None] * (behind - len(chars)))
        if not piece.narrow:
            # Wide characters and those that join are always written, and leave the cursor who knows where.
            self._put(row, column, piece.text, piece.style, piece.width)
            chars[column:behind] = [None] * piece.width
            self._at = None
            return
        new, style = piece.chars, piece.style
        if chars[column:behind] == new and styles[column:behind] == piece.styles:
            return
        first, last = 0, piece.width
        while chars[column + first] == new[first] and styles[column + first] == style:
            first += 1
        while chars[column + last - 1] == new[last - 1] and styles[column + last - 1] == style:
            last -= 1
        chars[column:behind] = new
        styles[column:behind] = piece.styles
        self._put(row, column + first, piece.text[first:last], style, last - first)

    def _put(self, row: int, column: int, text: str, style: Style, width: int) -> None:
        if self._at != (row, column) and not self._cross(row, column):
            self._move(row, column)
        if self._pen != style:
            self._out.append(_change(self._pen, style))
            self._pen = style
        self._out.append(text)
        self._at = (row, column + width)

    def _cross(self, row: int, column: int) -> bool:
        """Reach the column by writing again what stands before it, where that is short and in the pen's style."""
        if self._at is None or self._at[0] != row or not 0 < column - self._at[1] <= _SHORT_GAP:
            return False
        begin = self._at[1]
        between = self._chars[row][begin:column]
        if None in between or any(style != self._pen for style in self._styles[row][begin:column]):
            return False
        self._out.append("".join(filter(None, between)))
        return True

    def _move(self, row: int, column: int) -> None:
        if self._at is not None and self._at[0] == row and column > self._at[1]:
            ahead = column - self._at[1]
            self._out.append("\x1b[C" if ahead == 1 else f"\x1b[{ahead}C")
        else:
            self._out.append(f"\x1b[{row + 1};{column + 1}H")
        self._at = (row, column)


def _runs(data: str) -> list[Run] | None:
    """The parts of a frame; None where `data` holds anything else."""
    before, *placed = _PLACE.split(data)
    if before or not placed:
        return None
    runs = []
    for line, place, told in zip(placed[::3], placed[1::3], placed[2::3], strict=True):
        pieces = [_piece(text) for text in told.split(_REST) if text]
        if None in pieces:
            return None
        runs.append((int(line) - 1, int(place) - 1, cast("list[Piece]", pieces)))
    return runs


@lru_cache(maxsize=8192)
def _piece(told: str) -> Piece | None:
    match = _PIECE.fullmatch(told)
    if match is None:
        return None
    style, text = match[1] or "", match[2]
    if not text.strip(" "):
        style = _without_foreground(style)
    width = cell_len(text)
    narrow = text.isascii() or (width == len(text) and all(cell_len(char) == 1 for char in text))
    return Piece(text, style, width, narrow, list(text), [style] * width, ends_line=bool(match[3]))


@lru_cache(maxsize=1024)
def _parsed(style: Style) -> tuple[frozenset[str], str, str]:
    """Attributes, foreground, background of a style, as SGR parameters; "39" and "49" are the terminal's own."""
    attributes, foreground, background = set(), "39", "49"
    codes = style.split(";") if style else []
    while codes:
        code = codes.pop(0)
        if code in ("38", "48") and codes:
            length = 2 if codes[0] == "5" else 4
            told, codes = ";".join([code, *codes[:length]]), codes[length:]
            if code == "38":
                foreground = told
            else:
                background = told
        elif code.isdigit() and (30 <= int(code) <= 39 or 90 <= int(code) <= 97):
            foreground = code
        elif code.isdigit() and (40 <= int(code) <= 49 or 100 <= int(code) <= 107):
            background = code
        else:
            attributes.add(code)
    return frozenset(attributes), foreground, background


@lru_cache(maxsize=1024)
def _without_foreground(style: Style) -> Style:
    """The style of blanks: without lines or reversed colours their foreground is not to be seen."""
    attributes, _, background = _parsed(style)
    if attributes - {"1", "2", "3"}:
        return style
    return "" if background == "49" else background


@lru_cache(maxsize=4096)
def _change(before: Style | None, after: Style) -> str:
    """The shortest sequence that leads from one style to the other."""
    whole = f"\x1b[0;{after}m" if after else "\x1b[0m"
    if before is None:
        return whole
    old, new = _parsed(before), _parsed(after)
    if old[0] - new[0]:
        return whole
    codes = [*sorted(new[0] - old[0]), *(now for was, now in zip(old[1:], new[1:], strict=True) if was != now)]
    short = f"\x1b[{';'.join(codes)}m" if codes else ""
    return short if len(short) <= len(whole) else whole
