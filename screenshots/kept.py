"""Pictures of screens that were kept cell by cell, so that a machine that is not at hand later is shown all the same.

`tests.hardware.road` keeps those of a real GPU box.  `screens/NAME.json.gz` holds what `Terminal.cells` of
tests/rigs/terminal.py gives; `.venv/bin/python -m screenshots.kept SCREEN.json PICTURE.png` draws any other.
"""

import gzip
import json
import sys
from pathlib import Path

from rich.color import Color, ColorParseError
from rich.style import Style

from screenshots.drawing import Cell, png_of, svg_of_cells

FOLDER = Path(__file__).parent / "screens"
KEPT = {path.name.removesuffix(".json.gz"): path for path in sorted(FOLDER.glob("*.json.gz"))}
_NAMES = {"brown": "yellow", "brightbrown": "bright_yellow"}  # pyte's words for two of the sixteen colours


def cells_from(rows: list[list[list[str]]]) -> list[list[Cell]]:
    """Cells for `svg_of_cells`."""
    return [[(character, _style(colour, ground, marks)) for character, colour, ground, marks in row] for row in rows]


def ground_of(rows: list[list[Cell]]) -> str:
    """The ground behind most cells."""
    grounds = [style.bgcolor.get_truecolor().hex for row in rows for _, style in row if style.bgcolor is not None]
    return max(set(grounds), key=grounds.count, default="#000000")


def _style(colour: str, ground: str, marks: str) -> Style:
    return Style(
        color=_colour(colour),
        bgcolor=_colour(ground),
        bold="bold" in marks,
        italic="italics" in marks,
        underline="underscore" in marks,
        reverse="reverse" in marks,
    )


def _colour(word: str) -> Color | None:
    if word == "default":
        return None
    word = _NAMES.get(word, word.replace("bright", "bright_"))
    try:
        return Color.parse(word)
    except ColorParseError:
        return Color.parse(f"#{word}")


def picture_of(screen: Path) -> bytes:
    """The PNG of a kept screen."""
    raw = screen.read_bytes()
    cells = cells_from(json.loads(gzip.decompress(raw) if screen.suffix == ".gz" else raw))
    return png_of(svg_of_cells(cells, ground_of(cells)))


def main(screen: str, picture: str) -> None:
    Path(picture).write_bytes(picture_of(Path(screen)))


if __name__ == "__main__":
    main(*sys.argv[1:])
