"""Finding and reading models, away from the screen's thread: a shelf on a network disk can take seconds."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpudeck.app.feeds import Post
from gpudeck.app.messages import ModelRead, ModelsWeighed, ShelfSearched
from gpudeck.services.box.types import Box
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.findings import VerdictState
from gpudeck.services.plan.fit import Fit
from gpudeck.services.plan.fitting import fit
from gpudeck.services.plan.types import EngineSpec
from gpudeck.services.rules.surroundings import Surroundings


class ModelDesk:
    """Searches the shelf and reads one model at a time; answers by message."""

    def __init__(self, roots: Callable[[], Sequence[Path]], post: Post) -> None:
        self._roots = roots
        self._post = post
        self._search = 0  # which search is the last one; an older one ends

    def stop(self) -> None:
        """Weigh no further models: nobody looks at the shelf any more."""
        self._search += 1

    def search(self, box: Box | None, used: Mapping[int, int], beside: Surroundings) -> None:
        """Look for models; ShelfSearched follows, and for each model how it fits the box, where there is one."""
        self._search += 1
        number = self._search

        def look() -> None:
            from gpudeck.services.models.shelf import find_models

            try:
                entries = find_models(self._roots())
            except OperatorError as error:
                self._post(ShelfSearched((), str(error)))
                return
            self._post(ShelfSearched(entries))
            for entry in entries:
                if box is None or self._search != number:
                    return
                if entry.problem is None:
                    self._post(ModelsWeighed(entry.path, _fit(entry.path, box, used, beside)))

        threading.Thread(target=look, name="model-shelf", daemon=True).start()

    def read(self, path: str, spec: EngineSpec | None = None) -> None:
        """Read a model's facts; ModelRead follows, with the spec that is to be put on the board, if any."""

        def look() -> None:
            from gpudeck.services.models.read import read_model

            try:
                self._post(ModelRead(path, read_model(path), spec=spec))
            except OperatorError as error:
                self._post(ModelRead(path, None, str(error), spec=spec))

        threading.Thread(target=look, name="model-read", daemon=True).start()


def _fit(path: str, box: Box, used: Mapping[int, int], beside: Surroundings) -> Fit:
    from gpudeck.services.models.read import read_model

    try:
        return fit(box, read_model(path), used, beside)
    except OperatorError as error:
        return Fit(VerdictState.BLOCKED, why=str(error))
