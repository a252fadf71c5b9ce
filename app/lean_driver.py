"""Textual's driver for Unix terminals, which sends only what changed."""

from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from gpudeck.app.repaint import Repaint


class LeanDriver(LinuxDriver):
    """The same screen for a quarter of the bytes (docs/benchmarks.md)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._repaint = Repaint()

    def write(self, data: str) -> None:
        told = self._repaint.through(data)
        if told:
            super().write(told)

    def forget(self) -> None:
        """Draw every cell anew: the terminal may show anything, after a change of its size or another's words."""
        self._repaint.forget()
