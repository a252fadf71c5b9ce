"""What stands in engines' units, looked at away from the screen's thread: drift, and findings of hand-written ones."""

import logging
import threading
from collections.abc import Callable

from gpudeck.app.feeds import Post
from gpudeck.app.messages import UnitsDrifted, UnitsReviewed
from gpudeck.services.box.types import Box
from gpudeck.services.engine.drift import Drift
from gpudeck.services.engine.types import Runner, UnitState
from gpudeck.services.errors import OperatorError

log = logging.getLogger(__name__)


class UnitDesk:
    """One look of a kind at a time: what is asked for meanwhile is left to the next."""

    def __init__(self, runner: Callable[[], Runner | None], post: Post) -> None:
        self._runner = runner
        self._post = post
        self._lock = threading.Lock()
        self._looking: set[str] = set()

    def look_for_drift(self, units: tuple[UnitState, ...]) -> None:
        """UnitsDrifted follows, with those that have not drifted too."""

        def look(runner: Runner) -> None:
            found: dict[str, tuple[Drift, ...]] = {}
            for unit in units:
                try:
                    found[unit.name] = runner.drift(unit.name)
                except OperatorError:
                    continue  # the bus went away, or the unit did: what was known of it stays
            self._post(UnitsDrifted(found))

        self._do("look-for-drift", look)

    def review(self, box: Box | None, vllm_version: str) -> None:
        """Read and judge the units of others; UnitsReviewed follows."""

        def look(runner: Runner) -> None:
            from gpudeck.services.adoption.on_runner import found_by, reviewed

            try:
                found = found_by(runner, box)
            except OperatorError:
                return
            self._post(UnitsReviewed(tuple(reviewed(each, box, vllm_version) for each in found)))

        self._do("review-units", look)

    def _do(self, name: str, look: Callable[[Runner], None]) -> None:
        runner = self._runner()
        with self._lock:
            if runner is None or name in self._looking:
                return
            self._looking.add(name)

        def do() -> None:
            try:
                look(runner)
            except Exception:
                log.exception(name)
            finally:
                with self._lock:
                    self._looking.discard(name)

        threading.Thread(target=do, name=name, daemon=True).start()
