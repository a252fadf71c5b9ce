"""What running simulated engines put on the cards of a simulated box.

Each such engine keeps one JSON file in a directory and replaces it as its load moves:

    {"pid": 123, "engine": "gemma", "utilization": 87,
     "gpus": [{"gpu": 0, "memory_bytes": 1, "process": "VLLM::Worker_TP0", "tp_rank": 0, "pp_rank": 0}]}
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudeck.services.box.limits import MAX_BYTES, MAX_GPUS, MAX_INDEX
from gpudeck.services.box.shape import Field, Listing, Number, OrNull, Record, ShapeError, Text, Whole
from gpudeck.services.box.types import GpuProcess
from gpudeck.services.engine.ownership import engine_of

_MAX_FILE_BYTES = 1 << 20
_MAX_FILES = 256

_RANK = OrNull(Whole(0, 65535))
_CARD = Record(
    {
        "gpu": Field(Whole(0, MAX_INDEX), "index of the card", required=True),
        "memory_bytes": Field(Whole(0, MAX_BYTES), "what the process holds there", required=True),
        "process": Field(Text(), "the process's title", required=True),
        "tp_rank": Field(_RANK, "its tensor-parallel rank"),
        "pp_rank": Field(_RANK, "its pipeline stage"),
        "dp_rank": Field(_RANK, "its data-parallel copy"),
    }
)
_LOAD = Record(
    {
        "pid": Field(Whole(1, 1 << 31), "the simulated engine's process", required=True),
        "engine": Field(Text(), "its name", required=True),
        "gpus": Field(Listing(_CARD, MAX_GPUS), "the cards that it is on", required=True),
        "utilization": Field(Number(0, 100), "how busy it keeps them, %", required=True),
    }
)


@dataclass(frozen=True, slots=True)
class CardLoad:
    """What one engine does to one card."""

    gpu: int
    utilization: float  # 0 to 100
    process: GpuProcess


def read_loads(directory: Path) -> tuple[CardLoad, ...]:
    """The loads of the engines that live.  A file that is bad, or whose process has ended, counts for nothing."""
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix == ".json")[:_MAX_FILES]
    except OSError:
        return ()
    return tuple(load for path in paths for load in _loads_of(path))


def _loads_of(path: Path) -> list[CardLoad]:
    try:
        with path.open("rb") as stream:
            document: dict[str, Any] = json.loads(stream.read(_MAX_FILE_BYTES))
        _LOAD.check(document, path.name)
    except (OSError, ValueError, RecursionError, ShapeError):
        return []
    if not _lives(document["pid"]):
        return []
    return [
        CardLoad(
            card["gpu"],
            document["utilization"],
            GpuProcess(
                pid=document["pid"],
                name=card["process"],
                memory_bytes=card["memory_bytes"],
                engine=engine_of(document["pid"]) or document["engine"],
                tp_rank=card.get("tp_rank"),
                pp_rank=card.get("pp_rank"),
                dp_rank=card.get("dp_rank"),
            ),
        )
        for card in document["gpus"]
    ]


def _lives(pid: int) -> bool:
    """Whether the process runs.  One that has ended and was not yet waited for is a zombie, and does not."""
    try:
        # The state is the first word after the name, which stands in parentheses and may hold any character.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False
