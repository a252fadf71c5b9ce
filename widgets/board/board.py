"""The board: place cards by mouse or by keys, and see what vLLM would say before the card is down."""

from collections.abc import Mapping
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
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
from gpudeck.widgets.messages import CardShared, PlacementChanged, PlacementPreviewed
from gpudeck.widgets.pace import Pace

FRAME_S = 1 / 30  # a drag draws no more often than this; moves within a cell draw nothing
TICK_S = 1 / 20  # edge scrolling, and a few more targets judged
JUDGED_A_TICK = 4


class Board(Widget, can_focus=True):
    """Columns are pipeline stages, rows are TP ranks, and the pool holds the cards that are not placed.

    The app sets `judge`, a pure function of some milliseconds at most; the board then shows at each target what a drop
    would make.  Every change by the operator posts `PlacementChanged`.  The mouse is captured by the board, never by
    what is drawn on it, and a drag ends with the button, the right button, Escape, or when the capture is lost.
    """

    ALLOW_SELECT = False
    HELP = """
    ## The board

    Columns are **pipeline stages**, rows are **tensor-parallel ranks**.  **Space** lifts the chosen card, the arrows
    (or h j k l) choose where it goes, **Space** or **Enter** drops it, **Escape** puts it back.  While a card is lifted
    each target says what vLLM would make of it.  Dropped on another card the two change places; dropped between two
    stages it becomes a stage of its own.  **Backspace** sends a card to the pool, **u** undoes, **Ctrl+R** redoes,
    **r** reads the stages as more copies of a smaller engine.  A card that another engine or plan uses is marked with
    whose it is; **S** shares the chosen card with it on purpose.
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "lift", "Lift", id="board.lift"),
        Binding("space,enter", "drop", "Drop", id="board.drop"),
        Binding("escape", "cancel", "Put back", id="board.cancel"),
        Binding("up,k", "step('up')", "Up", show=False, id="board.up"),
        Binding("down,j", "step('down')", "Down", show=False, id="board.down"),
        Binding("left,h", "step('left')", "Left", show=False, id="board.left"),
        Binding("right,l", "step('right')", "Right", show=False, id="board.right"),
        Binding("backspace,delete", "to_pool", "To the pool", id="board.pool"),
        Binding("u", "undo", "Undo", id="board.undo"),
        Binding("ctrl+r", "redo", "Redo", show=False, id="board.redo"),
        Binding("r", "replicas", "Copies", id="board.replicas"),
        Binding("S", "share", "Share the card", id="board.share"),
    ]
    DEFAULT_CSS = """
    Board { width: 1fr; height: 1fr; min-width: 40; min-height: 8; layers: base ghost; overflow: hidden; }
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

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        if action in ("drop", "cancel"):
            return self._drag is not None
        if action == "lift":
            return self._drag is None
        if action == "to_pool":
            return (self._chosen if self._drag is None else self._drag.gpu) in self.placement.gpus
        if action == "share":
            return self._drag is None and self._chosen in self.placement.gpus
        if action in ("undo", "redo", "replicas"):
            history = self._history
            able = {
                "undo": bool(history.past),
                "redo": bool(history.future),
                "replicas": len(history.present.stages) > 1,
            }
            return True if able[action] and self._drag is None else None
        return True

    def action_lift(self) -> None:
        if self._chosen is not None:
            self._begin_drag(self._chosen)

    def action_drop(self) -> None:
        self._drop()

    def action_cancel(self) -> None:
        self._end_drag()

    def action_step(self, direction: str) -> None:
        if self._drag is not None:
            self._aim(self._drag.step(Direction(direction)))
            return
        self._choose(neighbour(self.placement, self._pool_cards(), self._chosen, Direction(direction)))

    def action_to_pool(self) -> None:
        gpu = self._chosen if self._drag is None else self._drag.gpu
        self._end_drag()
        if gpu is not None:
            self._change(self._history.did(placing.put_in_pool(self.placement, gpu)))

    def action_undo(self) -> None:
        self._change(self._history.undone())

    def action_redo(self) -> None:
        self._change(self._history.redone())

    def action_share(self) -> None:
        if self._chosen is not None:
            self.post_message(CardShared(self._chosen))

    def action_replicas(self) -> None:
        self._change(self._history.did(placing.next_replicas(self.placement)))

    # The mouse.

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()
        if event.button != 1:
            self._end_drag()
            return
        gpu = self._surface.card_at(event.screen_offset)
        if self._drag is not None:
            # Lifted by a key: the press aims, the release drops.
            self._follow(event.screen_offset)
        elif gpu is not None:
            self._pressed = (gpu, event.screen_offset)
            self._choose(gpu)
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._pressed is not None and event.screen_offset != self._pressed[1]:
            gpu, self._pressed = self._pressed[0], None
            self._begin_drag(gpu)
            self._follow(event.screen_offset)
        elif self._pointer is not None and event.screen_offset != self._pointer:
            self._pointer = event.screen_offset
            self._frames.soon()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        # A terminal that reports no motion still tells where the button went up.
        if self._pressed is not None and event.screen_offset != self._pressed[1]:
            self._begin_drag(self._pressed[0])
            self._pointer = event.screen_offset
        self._pressed = None
        if self._pointer is not None:
            self._aim_at_pointer(event.screen_offset)
            self._drop()
        else:
            self.release_mouse()

    def on_mouse_release(self) -> None:
        """The capture is gone.  Where the board did not give it up (a dialog opened), the card goes back."""
        if self.app.mouse_captured is not self and (self._pressed or self._pointer):
            self._end_drag()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -3)

    def _wheel(self, event: events.MouseEvent, rows: int) -> None:
        # With the mouse captured the wheel comes here and not to the page under the pointer.
        if self._pointer is not None:
            event.stop()
            if self._surface.wheel(event.screen_offset, rows):
                self._frames.soon()

    def _follow(self, pointer: Offset) -> None:
        self._pointer = pointer
        self.capture_mouse()
        self._ghost.follow(pointer)
        self._aim_at_pointer(pointer)
        self._draw()

    def _aim_at_pointer(self, pointer: Offset) -> None:
        if self._drag is not None:
            self._aim(self._drag.hover(self._surface.target_at(pointer)))

    # Frames of a drag.

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
