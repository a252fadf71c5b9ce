"""Characters that are drawn, not set: frames, bars and signs, as terminals with a good renderer draw them.

A font's own line ends before its cell does, so that frames come out as rows of dashes and bars as rows of boxes; and no
font in the packages has every sign.  Each function gives one SVG path in a cell of the given place and size.
"""

from collections.abc import Callable

Path = Callable[[float, float, float, float], str]  # x, y, width, height of the cell → the path's `d`

LINE = 1.6  # strokes of frames, in pixels
HEAVY = 3.2

# Which edges of the cell a frame's lines reach from its middle: left, up, right, down.
_LINES = {"─": "lr", "│": "ud", "╭": "rd", "╮": "ld", "╰": "ru", "╯": "lu", "└": "ru"}
_HEAVY = {"━": "lr", "┃": "ud", "┏": "rd", "┓": "ld", "┗": "ru", "┛": "lu"}
_ROUND = "╭╮╰╯"
_DASHES = {"┄": 3, "┊": 4}
_EIGHTHS_UP = "▁▂▃▄▅▆▇"
_EIGHTHS_RIGHT = "▏▎▍▌▋▊▉"
_SHADES = {"░": 0.22, "▒": 0.45, "▓": 0.70}


def stroke(character: str) -> tuple[Path, float] | None:
    """The path and stroke width of a character that is drawn with a line; None for all others."""
    if character in _ROUND:
        return _corner(_LINES[character]), LINE
    if character in _LINES:
        return _lines(_LINES[character]), LINE
    if character in _HEAVY:
        return _lines(_HEAVY[character]), HEAVY
    if character in _DASHES:
        return _dashes(_DASHES[character], upright=character == "┊"), LINE
    return _STROKED.get(character)


def area(character: str) -> tuple[Path, float] | None:
    """The path and opacity of a character that is filled; None for all others."""
    if character in _SHADES:
        return _part(0, 0, 1, 1), _SHADES[character]
    if character in _EIGHTHS_UP:
        return _part(0, 1 - (_EIGHTHS_UP.index(character) + 1) / 8, 1, 1), 1.0
    if character in _EIGHTHS_RIGHT:
        return _part(0, 0, (7 - _EIGHTHS_RIGHT[::-1].index(character)) / 8, 1), 1.0
    return (_FILLED[character], 1.0) if character in _FILLED else None


def _lines(ends: str) -> Path:
    def path(x: float, y: float, width: float, height: float) -> str:
        middle = x + width / 2, y + height / 2
        to = {"l": (x, middle[1]), "r": (x + width, middle[1]), "u": (middle[0], y), "d": (middle[0], y + height)}
        (a, b), (c, d) = (to[end] for end in ends)
        return f"M{a} {b}L{middle[0]} {middle[1]}L{c} {d}"

    return path


def _corner(ends: str) -> Path:
    def path(x: float, y: float, width: float, height: float) -> str:
        middle, centre, radius = x + width / 2, y + height / 2, width / 2
        side = x if ends[0] == "l" else x + width
        end = y if ends[1] == "u" else y + height
        turn = centre - radius if ends[1] == "u" else centre + radius
        return f"M{side} {centre}Q{middle} {centre} {middle} {turn}L{middle} {end}"

    return path


def _dashes(count: int, *, upright: bool) -> Path:
    def path(x: float, y: float, width: float, height: float) -> str:
        step = (height if upright else width) / count
        middle = x + width / 2 if upright else y + height / 2
        starts = [(y if upright else x) + (number + 0.2) * step for number in range(count)]
        if upright:
            return "".join(f"M{middle} {start}V{start + 0.6 * step}" for start in starts)
        return "".join(f"M{start} {middle}H{start + 0.6 * step}" for start in starts)

    return path


def _part(left: float, top: float, right: float, bottom: float) -> Path:
    def path(x: float, y: float, width: float, height: float) -> str:
        return f"M{x + left * width} {y + top * height}H{x + right * width}V{y + bottom * height}H{x + left * width}Z"

    return path


def _polygon(*points: tuple[float, float]) -> Path:
    """Points from the cell's middle, in cell widths."""

    def path(x: float, y: float, width: float, height: float) -> str:
        middle = x + width / 2, y + height / 2
        corners = [f"{middle[0] + right * width} {middle[1] + down * width}" for right, down in points]
        return f"M{'L'.join(corners)}Z"

    return path


def _strokes(*lines: tuple[tuple[float, float], ...]) -> Path:
    """Lines through points from the cell's middle, in cell widths."""

    def path(x: float, y: float, width: float, height: float) -> str:
        middle = x + width / 2, y + height / 2
        return "".join(
            "M" + "L".join(f"{middle[0] + right * width} {middle[1] + down * width}" for right, down in line)
            for line in lines
        )

    return path


def _disc(x: float, y: float, width: float, height: float) -> str:
    radius = 0.38 * width
    return (
        f"M{x + width / 2 - radius} {y + height / 2}a{radius} {radius} 0 1 0 {2 * radius} 0"
        f"a{radius} {radius} 0 1 0 {-2 * radius} 0Z"
    )


def _half_disc(x: float, y: float, width: float, height: float) -> str:
    """A ring whose left half is full."""
    outer, inner = 0.38 * width, 0.27 * width
    middle, top = x + width / 2, y + height / 2
    return (
        f"M{middle} {top - outer}A{outer} {outer} 0 1 0 {middle} {top + outer}"
        f"A{outer} {outer} 0 0 0 {middle} {top - outer}Z"
        f"M{middle} {top - inner}A{inner} {inner} 0 0 1 {middle} {top + inner}Z"
    )


def _end_of_bar(x: float, y: float, width: float, height: float) -> str:
    """A heavy line up to the middle of the cell, and a light one on."""
    middle, half, centre = x + width / 2, width / 2, y + height / 2
    return f"M{x} {centre - HEAVY / 2}h{half}v{HEAVY}h{-half}ZM{middle} {centre - LINE / 2}h{half}v{LINE}h{-half}Z"


_FILLED: dict[str, Path] = {
    "╾": _end_of_bar,
    "█": _part(0, 0, 1, 1),
    "●": _disc,
    "◐": _half_disc,
    "■": _polygon((-0.36, -0.36), (0.36, -0.36), (0.36, 0.36), (-0.36, 0.36)),
    "▲": _polygon((0, -0.42), (0.44, 0.36), (-0.44, 0.36)),
}
_STROKED: dict[str, tuple[Path, float]] = {
    "✗": (_strokes(((-0.32, -0.36), (0.32, 0.36)), ((0.32, -0.36), (-0.32, 0.36))), 2.2),
    "╳": (_strokes(((-0.5, -1.0), (0.5, 1.0)), ((0.5, -1.0), (-0.5, 1.0))), 1.2),
    "→": (_strokes(((-0.42, 0), (0.42, 0)), ((0.14, -0.26), (0.42, 0), (0.14, 0.26))), 1.6),
    "⇄": (
        _strokes(
            ((-0.42, -0.24), (0.42, -0.24)),
            ((0.18, -0.44), (0.42, -0.24), (0.18, -0.04)),
            ((0.42, 0.24), (-0.42, 0.24)),
            ((-0.18, 0.04), (-0.42, 0.24), (-0.18, 0.44)),
        ),
        1.4,
    ),
}
