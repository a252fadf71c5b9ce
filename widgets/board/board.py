"""The board: place cards by mouse or by keys, and see what vLLM would say before the card is down."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from gpudeck.services.errors import OperatorError
from gpudeck.services.plan import placing
from gpudeck.services.plan.copies import with_copy, without_copy
from gpudeck.services.plan.dragging import Direction, neighbour
from gpudeck.widgets.board.table import Table
from gpudeck.widgets.messages import CardShared, Refused


class Board(Table, can_focus=True):
    """Columns are pipeline stages, rows are TP ranks, and the pool holds the cards that are not placed.

    The mouse is captured by the board, never by what is drawn on it, and a drag ends with the button, the right button,
    Escape, or when the capture is lost.
    """

    HELP = """
    ## The board

    Columns are **pipeline stages**, rows are **tensor-parallel ranks**.  **Space** lifts the chosen card, the arrows
    (or h j k l) choose where it goes, **Space** or **Enter** drops it, **Escape** puts it back.  While a card is lifted
    each target says what vLLM would make of it.  Dropped on another card the two change places; dropped between two
    stages it becomes a stage of its own.  **Backspace** sends a card to the pool, **u** undoes, **Ctrl+R** redoes,
    **+** adds a copy of the shape on cards that are free, **-** takes the last one away, **r** reads the stages as more
    copies of a smaller engine.  A card that another engine or plan uses is marked with
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
        Binding("r", "replicas", "Read as copies", show=False, id="board.replicas"),
        Binding("plus", "copy(1)", "One more copy", id="board.more-copies"),
        Binding("minus", "copy(-1)", "One copy less", id="board.fewer-copies"),
        Binding("S", "share", "Share the card", id="board.share"),
    ]

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("drop", "cancel"):
            return self._drag is not None
        if action == "lift":
            return self._drag is None
        if action == "to_pool":
            return (self._chosen if self._drag is None else self._drag.gpu) in self.placement.gpus
        if action == "share":
            return self._drag is None and self._chosen in self.placement.gpus
        if action == "copy":
            enough = bool(self.placement.stages) if parameters == (1,) else self.placement.replicas > 1
            return enough and self._drag is None
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

    def action_copy(self, by: int) -> None:
        if by < 0:
            self._change(self._history.did(without_copy(self.placement)))
            return
        try:
            larger = with_copy(self._box, self.placement, self._occupants.keys() - self._shared)
        except OperatorError as error:
            self.post_message(Refused(str(error)))
        else:
            self._change(self._history.did(larger))

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
