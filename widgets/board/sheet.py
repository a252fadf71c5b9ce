"""A page of cells to draw on, which becomes lines; pure."""

from rich.cells import get_character_cell_size

from gpudeck.widgets.lines import Line

Cell = tuple[str, str]  # one character (or none, behind a wide one) and the names of its styles
BLANK: Cell = (" ", "")


class Sheet:
    """`width` × `height` cells; what is drawn outside of them is lost."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._rows: list[list[Cell]] = [[BLANK] * width for _ in range(height)]

    def put(self, x: int, y: int, text: str, style: str = "") -> None:
        """Write a text to the right of (x, y), over what is there."""
        if not 0 <= y < self.height:
            return
        row = self._rows[y]
        for character in text:
            size = get_character_cell_size(character)
            if size == 0:
                if 0 < x <= self.width:
                    row[x - 1] = (row[x - 1][0] + character, row[x - 1][1])
                continue
            if x >= 0 and x + size <= self.width:
                row[x] = (character, style)
                if size == 2:
                    row[x + 1] = ("", style)
            x += size

    def put_line(self, x: int, y: int, line: Line) -> None:
        for text, style in line:
            self.put(x, y, text, style)
            x += sum(map(get_character_cell_size, text))

    def wash(self, x: int, y: int, width: int, height: int, style: str) -> None:
        """Add a style to every cell of a rectangle."""
        for row in self._rows[max(y, 0) : max(y + height, 0)]:
            for column in range(max(x, 0), min(x + width, self.width)):
                character, names = row[column]
                row[column] = (character, f"{names} {style}" if names else style)

    def frame(self, x: int, y: int, width: int, height: int, characters: str, style: str) -> None:
        """A frame of six characters: the corners row by row, then horizontal and vertical."""
        upper_left, upper_right, lower_left, lower_right, horizontal, vertical = tuple(characters)
        self.put(x, y, upper_left + horizontal * (width - 2) + upper_right, style)
        for row in range(y + 1, y + height - 1):
            self.put(x, row, vertical, style)
            self.put(x + width - 1, row, vertical, style)
        self.put(x, y + height - 1, lower_left + horizontal * (width - 2) + lower_right, style)

    def lines(self) -> list[Line]:
        return [_spans(row) for row in self._rows]


def _spans(row: list[Cell]) -> Line:
    end = len(row)
    while end and row[end - 1] == BLANK:
        end -= 1
    spans: list[tuple[str, str]] = []
    text, style = "", ""
    for character, names in row[:end]:
        if names != style and text:
            spans.append((text, style))
            text = ""
        text += character
        style = names
    return (*spans, (text, style)) if text else tuple(spans)
