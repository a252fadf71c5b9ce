"""Finding and reading models, away from the screen's thread: a shelf on a network disk can take seconds."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from gpudeck.app.feeds import Post
from gpudeck.app.messages import ModelRead, ShelfSearched
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineSpec


class ModelDesk:
    """Searches the shelf and reads one model at a time; answers by message."""

    def __init__(self, roots: Callable[[], Sequence[Path]], post: Post) -> None:
        self._roots = roots
        self._post = post

    def search(self) -> None:
        """Look for models; ShelfSearched follows."""

        def look() -> None:
            from gpudeck.services.models.shelf import find_models

            try:
                self._post(ShelfSearched(find_models(self._roots())))
            except OperatorError as error:
                self._post(ShelfSearched((), str(error)))

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
