"""The board's two pages beside each other, and what lies under a point of the screen."""

from textual import events
from textual.app import ComposeResult
from textual.geometry import Offset, Region
from textual.message import Message
from textual.widget import Widget

from gpudeck.services.plan.dragging import Pool, Target
from gpudeck.widgets.board.layout import StagesLayout
from gpudeck.widgets.board.paint_pool import paint_pool
from gpudeck.widgets.board.paint_stages import paint_stages
from gpudeck.widgets.board.scene import Scene
from gpudeck.widgets.board.views import PageView, PoolView, StagesView

ROOM_FOR_SIZES = 100  # columns below which the pool shows names only
POOL_WIDTHS = (19, 28)  # without sizes, with them


class Surface(Widget, can_focus=False):
    """Draws a scene, and answers for it: which card, which target.  It starts nothing by itself."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Surface { width: 1fr; height: 1fr; overflow: hidden; }
    """

    class Resized(Message):
        """The pages have other sizes: the scene has to be drawn again."""

    def __init__(self) -> None:
        super().__init__()
        self._pool, self._stages = PoolView(), StagesView()
        self._layout: StagesLayout | None = None

    def compose(self) -> ComposeResult:
        yield self._pool
        yield self._stages

    def on_resize(self, event: events.Resize) -> None:
        self._pool.styles.width = POOL_WIDTHS[event.size.width >= ROOM_FOR_SIZES]

    def on_page_view_resized(self, event: PageView.Resized) -> None:
        event.stop()
        self.post_message(self.Resized())

    def draw(self, scene: Scene) -> None:
        """Draw a scene; before the pages have a size nothing happens."""
        width, height = self._stages.room
        if not width or not self._pool.room.width:
            return
        self._layout = StagesLayout.of(scene.placement, width, height)
        self._stages.show_lines(paint_stages(scene, self._layout), self._layout.width)
        self._pool.show_cards(*paint_pool(scene, self._pool.room.width))

    def card_at(self, screen: Offset) -> int | None:
        """The card that is seen at a point of the screen."""
        if (point := self._pool.page_point(screen)) is not None:
            return self._pool.card_at(point.y)
        if (point := self._stages.page_point(screen)) is not None and self._layout is not None:
            return self._layout.card_at(point.x, point.y)
        return None

    def target_at(self, screen: Offset) -> Target | None:
        """What a card dropped at a point of the screen lands on; None outside of both pages."""
        if self._pool.page_point(screen) is not None:
            return Pool()
        if (point := self._stages.page_point(screen)) is not None and self._layout is not None:
            return self._layout.target_at(point.x, point.y)
        return None

    def show_card(self, gpu: int) -> None:
        """Scroll a card into view."""
        place = None if self._layout is None else self._layout.place_of(gpu)
        if self._layout is None or place is None:
            self._pool.keep_card_visible(gpu)
            return
        x, y, width, height = self._layout.card(*place)
        self._stages.scroll_to_region(Region(x, max(0, y - 1), width, height + 1), animate=False)

    def show_target(self, target: Target) -> None:
        """Scroll a target into view."""
        region = None if self._layout is None else self._layout.region(target)
        if region is not None:
            self._stages.scroll_to_region(region, animate=False)

    def push(self, pointer: Offset) -> bool:
        """Scroll the page whose edge a dragging pointer is close to; whether that moved it."""
        return any(view.push(view.edge_push(pointer)) for view in (self._pool, self._stages))

    def wheel(self, pointer: Offset, rows: int) -> bool:
        """Scroll the page under the pointer by so many rows; whether that moved it."""
        views = (view for view in (self._pool, self._stages) if view.region.contains_point(pointer))
        return any(view.push(Offset(0, rows)) for view in views)
