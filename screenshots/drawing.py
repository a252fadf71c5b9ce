"""The screen of a running panel as SVG, and SVG as PNG."""

from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import resvg_py
from rich.cells import get_character_cell_size
from rich.color import Color
from rich.style import Style
from textual.app import App

from screenshots.shapes import area, stroke

FONT = "JetBrains Mono"
CELL = (11.0, 22.0)  # pixels
FONT_SIZE = 18.0
BASELINE = 16.0  # below the top of the cell
MARGIN = 10.0

Cell = tuple[str, Style]  # behind a wide character stands an empty one


def screen_cells(app: App[Any]) -> list[list[Cell]]:
    """What the terminal shows of `app`, cell by cell, dialogs and notices included."""
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    rows = []
    for strips in update.strips:  # type: ignore[union-attr]
        row: list[Cell] = []
        for text, style, _ in (segment for strip in strips for segment in strip):
            for character in text:
                size = get_character_cell_size(character)
                if size == 0 and row:
                    row[-1] = (row[-1][0] + character, row[-1][1])
                elif size:
                    row += [(character, style or Style()), *([("", style or Style())] * (size - 1))]
        rows.append(row)
    return rows


def svg_of(app: App[Any]) -> str:
    """The screen as an SVG of its own; text needs the font of `png_of`."""
    return svg_of_cells(screen_cells(app), _background(app.screen.rich_style))


def svg_of_cells(rows: list[list[Cell]], ground: str) -> str:
    """Cells as `screen_cells` gives them, on a ground of one colour ("#101418")."""
    width, height = CELL
    size = len(rows[0]) * width + 2 * MARGIN, len(rows) * height + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]:g}" height="{size[1]:g}"'
        f' font-family="{FONT}" font-size="{FONT_SIZE:g}" xml:space="preserve">',
        f'<rect width="100%" height="100%" rx="8" fill="{ground}"/>',
        f'<g transform="translate({MARGIN:g} {MARGIN:g})">',
    ]
    for y, row in enumerate(rows):
        parts += _grounds(row, y * height)
    for y, row in enumerate(rows):
        parts += _characters(row, y * height)
    return "\n".join((*parts, "</g>", "</svg>", ""))


def png_of(svg: str) -> bytes:
    """The picture, with the packaged font alone: a system's fonts would change it from machine to machine."""
    fonts = Path(str(files("fontpkg_jetbrains_mono") / "files"))
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, font_dirs=[str(fonts)], skip_system_fonts=True))


def _grounds(row: list[Cell], y: float) -> Iterator[str]:
    """A rectangle for each run of one background."""
    width, height = CELL
    for x, run in _runs(row, _background):
        style = run[0][1]
        yield (
            f'<rect x="{x * width:g}" y="{y:g}" width="{len(run) * width:g}" height="{height:g}"'
            f' fill="{_background(style)}" shape-rendering="crispEdges"/>'
        )


def _characters(row: list[Cell], y: float) -> Iterator[str]:
    """What stands in the cells: text with a place for each letter, so that it can not run out of its cells."""
    width, height = CELL
    for start, run in _runs(row, _ink):
        colour, marks = _ink(run[0][1])
        letters = []
        for place, (character, _) in enumerate(run):
            x = (start + place) * width
            if (filled := area(character)) is not None:
                path, opacity = filled
                yield f'<path d="{path(x, y, width, height)}" fill="{colour}" fill-opacity="{opacity:g}"/>'
            elif (drawn := stroke(character)) is not None:
                path, thickness = drawn
                look = f'fill="none" stroke="{colour}" stroke-width="{thickness:g}"'
                yield f'<path d="{path(x, y, width, height)}" {look}/>'
            elif character.strip():
                letters.append((x, character))
        if letters:
            places = " ".join(f"{x:g}" for x, _ in letters)
            text = escape("".join(character for _, character in letters))
            yield f'<text x="{places}" y="{y + BASELINE:g}" fill="{colour}"{marks}>{text}</text>'


def _runs(row: list[Cell], key: Any) -> Iterator[tuple[int, list[Cell]]]:
    start = 0
    for place in range(1, len(row) + 1):
        if place == len(row) or key(row[place][1]) != key(row[start][1]):
            yield start, row[start:place]
            start = place


def _ink(style: Style) -> tuple[str, str]:
    colour = style.bgcolor if style.reverse else style.color
    marks = "".join(
        mark
        for mark, present in (
            (' font-weight="700"', style.bold),
            (' font-style="italic"', style.italic),
            (' text-decoration="underline"', style.underline),
        )
        if present
    )
    return _hex(colour, "#d5dae0"), marks


def _background(style: Style) -> str:
    return _hex(style.color if style.reverse else style.bgcolor, "#000000")


def _hex(colour: Color | None, default: str) -> str:
    return default if colour is None or colour.is_default else colour.get_truecolor().hex
