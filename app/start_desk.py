"""What is kept of engines' starts, and what to check of one that stands still, away from the screen's thread."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from gpudeck.app.feeds import Post
from gpudeck.app.messages import StartChecked, StartsRead
from gpudeck.services.box.types import Snapshot
from gpudeck.services.engine.starts.kept import StartBook
from gpudeck.services.engine.starts.times import PhaseTimes
from gpudeck.services.engine.types import UnitState

log = logging.getLogger(__name__)


class StartDesk:
    def __init__(self, home: Path, post: Post) -> None:
        self._book = StartBook(home)
        self._post = post

    def read(self, state: UnitState) -> None:
        """StartsRead follows."""
        self._do("read-starts", lambda: self._post(StartsRead(state.name, self._book.of(state))))

    def keep(self, state: UnitState, times: PhaseTimes) -> None:
        """Note that the engine is ready; StartsRead follows."""

        def keep() -> None:
            self._book.keep(state, times)
            self._post(StartsRead(state.name, self._book.of(state)))

        self._do("keep-start", keep)

    def forget(self, state: UnitState) -> None:
        self._do("forget-starts", lambda: self._book.forget(state))

    def check(self, state: UnitState, seen: Snapshot | None, vllm_version: str) -> None:
        """Look at the five things of a start that stands still; StartChecked follows."""

        def check() -> None:
            from gpudeck.services.engine.starts.standstill import five_checks

            if state.spec is not None:
                checks = five_checks(state.spec, seen, vllm_version)
                self._post(StartChecked(state.name, state.main_pid, checks))

        self._do("check-start", check)

    def _do(self, name: str, act: Callable[[], object]) -> None:
        def do() -> None:
            try:
                act()
            except Exception:
                log.exception(name)

        threading.Thread(target=do, name=name, daemon=True).start()
