"""A unit file as text on screen: coloured by hand, and held against what stands there now.  Pure."""

import difflib
import re

from textual.content import Content

from gpudeck.services.text import printable

_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9]*)(=)(.*)", re.DOTALL)


def unit_content(text: str) -> Content:
    """The lines of a unit: sections, names of settings and comments told apart by colour."""
    return Content("\n").join(_line(printable(line)) for line in text.splitlines())


def diff_content(existing: str, text: str) -> Content:
    """What a write would change, as a unified diff; empty for equal texts."""
    lines = difflib.unified_diff(existing.splitlines(), text.splitlines(), lineterm="", n=3)
    shown = []
    for number, line in enumerate(lines):
        if number < 2:  # the two lines that name the files
            continue
        style = {"+": "$success", "-": "$error", "@": "$foreground 65%"}.get(line[0], "")
        text = printable(line if line.startswith("@@") else f"{line[0]} {line[1:]}")
        shown.append(Content.styled(text, style) if style else Content(text))
    return Content("\n").join(shown)


def changed_lines(existing: str, text: str) -> tuple[int, int]:
    """How many lines a write would add and remove."""
    lines = list(difflib.unified_diff(existing.splitlines(), text.splitlines(), lineterm="", n=0))[2:]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _line(line: str) -> Content:
    if line.startswith(("#", ";")):
        return Content.styled(line, "$foreground 65%")
    if line.startswith("["):
        return Content.styled(line, "bold $primary")
    match = _SETTING.fullmatch(line)
    if match is None:
        return Content(line)
    name, equals, value = match.groups()
    return Content.assemble((name, "$secondary"), (equals, "$foreground 65%"), Content(value))
