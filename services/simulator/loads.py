"""What the engine holds and does, told to whoever plays the cards.

Where $GPUDECK_SIMULATED_LOADS names a directory, `<pid>.json` stands in it as long as the engine runs:
{"pid", "engine", "gpus": [{"gpu", "memory_bytes", "process", "tp_rank", "pp_rank", "dp_rank"}],
"utilization": 0-100}.  It is replaced whole at every change.
"""

import json
import os
import threading
from contextlib import suppress
from pathlib import Path

from gpudeck.services.simulator.memory import Load
from gpudeck.services.simulator.workers import Worker


class LoadsFile:
    def __init__(self, directory: str, engine: str, load: Load, workers: tuple[Worker, ...]) -> None:
        """`directory` "" writes nothing; `workers` stand in the order of `load.ranks`."""
        self._path = Path(directory) / f"{os.getpid()}.json" if directory else None
        self._engine = engine
        self._load = load
        self._workers = workers
        self._guard = threading.Lock()
        self._told: tuple[float, int] | None = None
        self._part = 0.0

    def show(self, *, utilization: int, part: float | None = None) -> None:
        """`part` (0 to 1) of the weights and caches is held by now; None leaves it as it was."""
        with self._guard:
            if part is not None:
                self._part = part
            if self._path is None or self._told == (self._part, utilization):
                return
            self._told = (self._part, utilization)
            document = {
                "pid": os.getpid(),
                "engine": self._engine,
                "gpus": [
                    {
                        "gpu": rank.gpu,
                        "memory_bytes": int(rank.held * self._part),
                        "process": worker.title,
                        "tp_rank": rank.tp_rank,
                        "pp_rank": rank.pp_rank,
                        "dp_rank": rank.dp_rank,
                    }
                    for rank, worker in zip(self._load.ranks, self._workers, strict=True)
                ],
                "utilization": utilization,
            }
            # A full disk must not end an engine that only pretends.
            with suppress(OSError):
                temporary = self._path.with_suffix(".tmp")
                temporary.write_text(json.dumps(document), encoding="utf-8")
                temporary.replace(self._path)

    def remove(self) -> None:
        with self._guard:
            if self._path is not None:
                with suppress(OSError):
                    self._path.unlink()
                self._path = None
