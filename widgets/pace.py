"""An act done at once, and again no sooner than a pause later."""

from collections.abc import Callable

from textual.widget import Widget


class Pace:
    """Runs `act` for the first call of `soon`, then at most once in `pause_s` seconds however often it is called.

    The last call of a burst is never lost: it is answered when the pause is over.
    """

    def __init__(self, widget: Widget, pause_s: float, act: Callable[[], None]) -> None:
        self._widget, self._pause_s, self._act = widget, pause_s, act
        self._pausing = False
        self._due = False

    def soon(self) -> None:
        if self._pausing:
            self._due = True
            return
        self._pausing = True
        self._widget.set_timer(self._pause_s, self._pause_over)
        self._act()

    def forget(self) -> None:
        """Drop what is due."""
        self._due = False

    def _pause_over(self) -> None:
        self._pausing = False
        if self._due:
            self._due = False
            self.soon()
