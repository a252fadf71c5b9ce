"""The board's two pages as views, and what lies under a point of the screen."""

from collections.abc import Sequence

from textual.geometry import Offset
from textual.message import Message

from gpudeck.widgets.lines import Line, LineView


class PageView(LineView, can_focus=False):
    """A page that scrolls.  The board holds the focus and handles the mouse."""

    class Resized(Message):
        """The view has another size: what lies on the page moves."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def page_point(self, screen: Offset) -> Offset | None:
        """The point of the page that is shown at a point of the screen; None outside of the view."""
        region = self.scrollable_content_region
        if not region.contains_point(screen):
            return None
        return screen - region.offset + self.scroll_offset

    def edge_push(self, screen: Offset) -> Offset:
        """How far a drag at a point of the screen scrolls this page: towards the edge that it is close to."""
        region = self.region
        if not region.contains_point(screen):
            return Offset(0, 0)
        near = 2
        x = -2 if screen.x < region.x + near else 2 if screen.x >= region.right - near else 0
        y = -1 if screen.y < region.y + near else 1 if screen.y >= region.bottom - near else 0
        return Offset(x, y)

    def push(self, by: Offset) -> bool:
        """Scroll by so many cells; whether that moved the page."""
        before = self.scroll_offset
        self.scroll_to(before.x + by.x, before.y + by.y, animate=False)
        return self.scroll_offset != before


class StagesView(PageView):
    DEFAULT_CSS = """
    StagesView { width: 1fr; height: 1fr; }
    """


class PoolView(PageView):
    DEFAULT_CSS = """
    PoolView { dock: left; width: 28; height: 100%; background: $foreground 4%; overflow-x: hidden; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._owners: Sequence[int | None] = ()

    def show_cards(self, lines: Sequence[Line], owners: Sequence[int | None]) -> None:
        self._owners = owners
        self.show_lines(lines)

    def card_at(self, row: int) -> int | None:
        return self._owners[row] if 0 <= row < len(self._owners) else None

    def keep_card_visible(self, gpu: int) -> None:
        rows = [row for row, owner in enumerate(self._owners) if owner == gpu]
        if rows:
            self.keep_visible(rows[0], rows[-1])


class StatusView(LineView, can_focus=False):
    DEFAULT_CSS = """
    StatusView { dock: bottom; height: 1; width: 100%; overflow: hidden; }
    """
