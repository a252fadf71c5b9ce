"""The rows of the model picker: each model with how it fits the box."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from textual import events
from textual.message import Message

from gpudeck.services.models.types import ShelfEntry
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.fit import Fit
from gpudeck.services.text import printable
from gpudeck.widgets.glyphs import Glyphs, joined, wrap
from gpudeck.widgets.lines import Line, LineView, spread, under
from gpudeck.widgets.model_filter import size_in_words
from gpudeck.widgets.verdict import STATE_STYLES

_ORIGIN_WIDTH = 9
_SIZE_WIDTH = 9


class ModelRows(LineView):
    """The rows of the picker; the cursor is moved by the field above, or by a click."""

    DEFAULT_CSS = """
    ModelRows { height: 1fr; overflow-x: hidden; background: $surface; scrollbar-background: $surface; }
    """

    class ClickedAgain(Message):
        """A click on the row under the cursor."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._choices: list[ShelfEntry | str] = []
        self._message = ""
        self._fits: Mapping[str, Fit] = {}
        self._weighed = False
        self._current = 0
        self._owners: list[int] = []

    @property
    def chosen(self) -> str | None:
        """The path or hub id under the cursor; None where there is none that can be used."""
        if not 0 <= self._current < len(self._choices):
            return None
        choice = self._choices[self._current]
        if isinstance(choice, str):
            return choice
        return choice.path if choice.problem is None else None

    def show(
        self, choices: Sequence[ShelfEntry | str], message: str, fits: Mapping[str, Fit], *, weighed: bool
    ) -> None:
        """Show models, or a typed name as it is; `message` stands below them.

        `fits` says by path how each fits the box, as far as that is known; `weighed`: it is asked for.
        """
        self._fits, self._weighed = fits, weighed
        before = self._key(self._current)
        self._choices = list(choices)
        keys = [self._key(index) for index in range(len(self._choices))]
        self._current = keys.index(before) if before in keys else 0
        self._message = message
        self.draw()

    def move(self, by: int) -> None:
        if self._choices:
            self._current = min(max(self._current + by, 0), len(self._choices) - 1)
            self.draw()
            rows = [row for row, owner in enumerate(self._owners) if owner == self._current]
            self.keep_visible(rows[0], rows[-1])

    def draw(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        lines: list[Line] = []
        self._owners = []
        for index, choice in enumerate(self._choices):
            rows = self._typed_rows(choice) if isinstance(choice, str) else self._entry_rows(choice, width)
            if index == self._current:
                rows = [under(row, "cursor", width) for row in rows]
            lines += rows
            self._owners += [index] * len(rows)
        if self._message:
            lines += [((f" {text}", "muted"),) for text in wrap(self._message, width - 2)]
        self.show_lines(lines)

    def on_resize(self) -> None:
        self.draw()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        row = event.y + self.scroll_offset.y
        if 0 <= row < len(self._owners):
            again = self._owners[row] == self._current
            self._current = self._owners[row]
            self.draw()
            if again:
                self.post_message(ModelRows.ClickedAgain())

    def _key(self, index: int) -> str | None:
        if not 0 <= index < len(self._choices):
            return None
        choice = self._choices[index]
        return choice if isinstance(choice, str) else choice.path

    def _typed_rows(self, typed: str) -> list[Line]:
        return [((f" {self._glyphs.arrow} ", "primary"), (printable(typed), "strong"), ("  as typed", "muted"))]

    def _entry_rows(self, entry: ShelfEntry, width: int) -> list[Line]:
        glyphs = self._glyphs
        right: Line = (
            (size_in_words(entry.size_bytes).rjust(_SIZE_WIDTH), "text"),
            (f"  {glyphs.fit(_ORIGINS.get(entry.origin, entry.origin), _ORIGIN_WIDTH)} ", "muted"),
        )
        room = width - _SIZE_WIDTH - _ORIGIN_WIDTH - 7
        usable = entry.problem is None
        name = glyphs.cut(printable(entry.name), room)
        path = printable(entry.path)
        sign = ("   ", "") if usable else (f" {glyphs.blocked} ", "error")
        left: Line = (sign, (name, "strong" if usable else "muted"))
        if path != printable(entry.name) and room - cell_len(name) > 12:
            left = (*left, ("  ", ""), (glyphs.shorten(path, room - cell_len(name) - 2), "muted"))
        rows: list[Line] = [spread(left, right, width)]
        if entry.problem is not None:
            rows += [((f"   {text}", "error"),) for text in wrap(printable(entry.problem), width - 4)]
        elif self._weighed:
            rows += self._fit_rows(entry, width)
        return rows

    def _fit_rows(self, entry: ShelfEntry, width: int) -> list[Line]:
        """`● GPU 0,2 | 1,3 · 131,072 tokens of context`, or what is in the way."""
        glyphs, found = self._glyphs, self._fits.get(entry.path)
        if found is None:
            return [((f"   {glyphs.ellipsis}", "faint"),)]
        sign = (f"   {glyphs.state(found.state)} ", STATE_STYLES[found.state])
        if found.state is VerdictState.BLOCKED:
            first, *more = wrap(f"does not fit now: {printable(found.why)}", width - 6)
            return [(sign, (first, "muted")), *((("     ", ""), (line, "muted")) for line in more)]
        cards = " | ".join(",".join(map(str, stage)) for stage in found.placement.stages)
        words = joined((f"GPU {cards}", f"{found.context:,} tokens of context"), glyphs.dot)
        return [(sign, (glyphs.cut(words, width - 6), "text"))]


_ORIGINS = {"directory": "directory", "gguf": "GGUF", "hub cache": "hub cache"}
