"""What a board holds and shows: the placement and its history, the card in the air, the judgements; no hands."""

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.geometry import Offset
from textual.widget import Widget

from gpudeck.services.box.types import Box
from gpudeck.services.plan import placing
from gpudeck.services.plan.dragging import Direction, Drag, neighbour
from gpudeck.services.plan.findings import Judgement
from gpudeck.services.plan.placing import History
from gpudeck.services.plan.types import Placement
from gpudeck.services.text import printable
from gpudeck.widgets.board.ghost import DragGhost
from gpudeck.widgets.board.previews import Judge, Previews
from gpudeck.widgets.board.scene import Scene
from gpudeck.widgets.board.status import status_line
from gpudeck.widgets.board.surface import Surface
from gpudeck.widgets.board.views import StatusView
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.messages import PlacementChanged, PlacementPreviewed
from gpudeck.widgets.pace import Pace

FRAME_S = 1 / 30  # a drag draws no more often than this; moves within a cell draw nothing
TICK_S = 1 / 20  # edge scrolling, and a few more targets judged
JUDGED_A_TICK = 4


class Table(Widget, can_focus=True):
    """A board that nobody touches: `Board` adds the keys and the mouse.

    The app sets `judge`, a pure function of some milliseconds at most; the board then shows at each target what a drop
    would make.  Every change by the operator posts `PlacementChanged`.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Table { width: 1fr; height: 1fr; min-width: 40; min-height: 8; layers: base ghost; overflow: hidden; }
    """

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self._box = Box(())
        self._history = History()
        self._plan = 0  # whose placement that is
        self._histories: dict[int, History] = {}  # of the plans that are not on the board
        self._judgement: Judgement | None = None
        self._occupants: dict[int, str] = {}
        self._shared: frozenset[int] = frozenset()
        self._previews = Previews()
        self._drag: Drag | None = None
        self._chosen: int | None = None
        self._pressed: tuple[int, Offset] | None = None  # a card under the pressed button, and where that was
        self._pointer: Offset | None = None  # the mouse's place on the screen while it drags
        self._frames = Pace(self, FRAME_S, self._frame)
        self._surface, self._status, self._ghost = Surface(), StatusView(), DragGhost()

    def compose(self) -> ComposeResult:
        yield self._surface
        yield self._status
        yield self._ghost

    def on_mount(self) -> None:
        self._ticks = self.set_interval(TICK_S, self._tick, pause=True)

    # What the app gives.

    @property
    def placement(self) -> Placement:
        return self._history.present

    @property
    def chosen(self) -> int | None:
        """The card under the cursor."""
        return self._chosen

    @property
    def drag(self) -> Drag | None:
        """The lifted card, while there is one."""
        return self._drag

    @property
    def carried(self) -> bool:
        """Whether a card is in the air with the mouse."""
        return self._drag is not None and self._pointer is not None

    @property
    def judge(self) -> Judge | None:
        return self._previews.judge

    @judge.setter
    def judge(self, judge: Judge | None) -> None:
        """Set what judges every drop ahead; what an earlier judge said is forgotten."""
        self._previews.judge = judge
        self._judgement = self._previews.of(self.placement)
        self._previews.begin(self._drag)
        self._draw()

    def show_box(self, box: Box) -> None:
        if box == self._box:
            return
        self._end_drag()
        self._box = box
        if self._chosen is None:
            self._chosen = neighbour(self.placement, self._pool_cards(), None, Direction.DOWN)
        self._draw()

    def show_placement(self, placement: Placement, *, undoable: bool = True) -> None:
        """Show another placement.  One that is not `undoable` (another engine's) starts a history of its own."""
        if placement == self.placement and undoable:
            return
        self._end_drag()
        self._history = self._history.did(placement) if undoable else History(placement)
        self._judgement = self._previews.of(placement)
        self._draw()
        self.refresh_bindings()

    def show_plan(self, plan: int, placement: Placement) -> None:
        """Show a plan's placement.  Each plan has what can be undone and redone of its own."""
        if plan != self._plan:
            self._end_drag()
            self._histories[self._plan] = self._history
            self._plan = plan
            self._history = self._histories.pop(plan, History(placement))
            self._judgement = self._previews.of(self.placement)
            self._draw()
            self.refresh_bindings()
        self.show_placement(placement)

    def show_judgement(self, judgement: Judgement | None) -> None:
        """Show the judgement on the present placement; None: there is no model to judge by."""
        self._judgement = judgement
        self._draw()

    def show_occupants(self, occupants: Mapping[int, str], shared: frozenset[int] = frozenset()) -> None:
        """Mark the cards that others hold or plan on: a few words by GPU index, `coder 13.9 GiB`.

        `shared` are those that this plan shares with others on purpose.
        """
        self._occupants = {gpu: printable(words) for gpu, words in occupants.items()}
        self._shared = shared
        self._draw()

    def use_glyphs(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._draw()

    def lift(self, gpu: int) -> None:
        """Lift a card, as with keys."""
        self._begin_drag(gpu)

    def grab(self, gpu: int, pointer: Offset) -> None:
        """Take over a card that is being dragged with the mouse elsewhere, at a point of the screen."""
        self._begin_drag(gpu)
        self._follow(pointer)

    # Frames of a drag.

    def _follow(self, pointer: Offset) -> None:
        self._pointer = pointer
        self.capture_mouse()
        self._ghost.follow(pointer)
        self._aim_at_pointer(pointer)
        self._draw()

    def _aim_at_pointer(self, pointer: Offset) -> None:
        if self._drag is not None:
            self._aim(self._drag.hover(self._surface.target_at(pointer)))

    def _frame(self) -> None:
        if self._pointer is not None and self._drag is not None:
            self._ghost.follow(self._pointer)
            self._aim_at_pointer(self._pointer)

    def _tick(self) -> None:
        if self._pointer is not None and self._surface.push(self._pointer):
            self._frames.soon()
        if self._previews.advance(JUDGED_A_TICK):
            self._draw()

    # One drag from beginning to end.

    def _begin_drag(self, gpu: int) -> None:
        if self._box.gpu(gpu) is None and gpu not in self.placement.gpus:
            return
        if self._drag is not None:
            self._end_drag()
        self._chosen = gpu
        self._drag = Drag(self.placement, gpu)
        self._previews.begin(self._drag)
        self._previews.advance(JUDGED_A_TICK)
        self._ticks.resume()
        self._draw()
        self.refresh_bindings()

    def _aim(self, drag: Drag) -> None:
        if drag is self._drag:
            return
        self._drag = drag
        judgement = self._previews.aim(drag)
        self._draw()
        if self._pointer is None and drag.target is not None:
            self._surface.show_target(drag.target)
        self.post_message(PlacementPreviewed(drag.drop(), judgement))

    def _drop(self) -> None:
        if self._drag is not None:
            placement = self._drag.drop()
            self._end_drag()
            self._change(self._history.did(placement))

    def _end_drag(self) -> None:
        """Put the card back where it was; without one in the air nothing happens."""
        self._pressed, self._pointer = None, None
        self._frames.forget()
        self.release_mouse()
        if self._drag is None:
            return
        self._drag = None
        self._ghost.vanish()
        self._ticks.pause()
        self._previews.begin(None)
        self._draw()
        self.refresh_bindings()
        self.post_message(PlacementPreviewed(None, None))

    def _change(self, history: History) -> None:
        if history is self._history:
            return
        self._history = history
        self._judgement = self._previews.of(history.present)
        self._draw()
        self.call_after_refresh(self._show_chosen)
        self.refresh_bindings()
        self.post_message(PlacementChanged(history.present))

    def _pool_cards(self) -> tuple[int, ...]:
        return placing.unplaced(self._box, self.placement)

    def _choose(self, gpu: int | None) -> None:
        self._chosen = gpu
        self._draw()
        self._show_chosen()
        self.refresh_bindings()

    def _show_chosen(self) -> None:
        if self._chosen is not None:
            self._surface.show_card(self._chosen)

    def on_surface_resized(self) -> None:
        self._draw()

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self._draw()

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        scene = Scene(
            self._box,
            self.placement,
            self._glyphs,
            judgement=self._judgement,
            drag=self._drag,
            previews=self._previews.by_target,
            chosen=self._chosen,
            focused=self.has_focus,
            occupants=self._occupants,
            shared=self._shared,
        )
        self._surface.draw(scene)
        self._status.show_lines([status_line(scene, self._status.room.width)])
        if self._drag is not None and self._pointer is not None:
            self._ghost.show(self._drag, scene)
