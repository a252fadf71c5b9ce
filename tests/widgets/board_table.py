"""A board alone on the screen, for the tests that lay hands on it."""

import pytest
from textual.app import App, ComposeResult

from gpudeck.services.box.types import Box
from gpudeck.services.plan.types import Placement
from gpudeck.widgets.board.board import Board
from gpudeck.widgets.board.views import PoolView, StagesView, StatusView
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.messages import PlacementChanged, PlacementPreviewed, Refused
from tests.widgets.board_boxes import MIXED, judge

SIZES = pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["80x24", "200x50"])


class Table(App[None]):
    """A board alone on the screen, as the app would set it up."""

    def __init__(self, box: Box = MIXED, placement: Placement | None = None, glyphs: Glyphs | None = None) -> None:
        super().__init__()
        self.box, self.start, self.board = box, placement, Board(glyphs=glyphs)
        self.changes: list[Placement] = []
        self.refusals: list[str] = []
        self.previews: list[Placement | None] = []

    def compose(self) -> ComposeResult:
        yield self.board

    def on_mount(self) -> None:
        self.board.show_box(self.box)
        self.board.judge = judge
        if self.start is not None:
            self.board.show_placement(self.start, undoable=False)
        self.board.focus()

    def on_placement_changed(self, message: PlacementChanged) -> None:
        self.changes.append(message.placement)

    def on_refused(self, message: Refused) -> None:
        self.refusals.append(message.sentence)

    def on_placement_previewed(self, message: PlacementPreviewed) -> None:
        self.previews.append(message.placement)

    def stages(self) -> str:
        return self.query_one(StagesView).plain

    def status(self) -> str:
        return self.query_one(StatusView).plain

    def pool_point(self, row: int) -> tuple[int, int]:
        """The point of the screen where the pool's row is; cards begin in row 2."""
        x, y = self.query_one(PoolView).region.offset
        return x + 6, y + row

    def stage_point(self, x: int, y: int) -> tuple[int, int]:
        origin = self.query_one(StagesView).region.offset
        return origin.x + x, origin.y + y
