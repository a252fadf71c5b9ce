"""Where results are kept: one JSON file each, whole or not at all."""

import json
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from gpudeck.services.bench.document import document, result_from
from gpudeck.services.bench.types import Result
from gpudeck.services.box.shape import ShapeError
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable
from gpudeck.services.whole_file import write_whole

_LARGEST = 16 << 20  # bytes
_MOST = 2000  # files: the newest
_LONGEST_NAME = 80


def new_id(now: datetime, names: Sequence[str]) -> str:
    """ "20261201-140312-chat+coder", of characters that every file system takes."""
    plain = re.sub(r"[^0-9A-Za-z._-]+", "_", "+".join(names).replace("+", "_"))[:_LONGEST_NAME]
    return f"{now.astimezone(timezone.utc):%Y%m%d-%H%M%S}-{plain}"


def keep(result: Result, home: Path) -> Path:
    """Write the result into `home`, for its owner to read.  Raises OperatorError."""
    path = home / f"{result.id}.json"
    try:
        home.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(document(result), indent=1).encode())
    except OSError as error:
        raise OperatorError(f"The result can not be kept in {home}: {error.strerror}.") from None
    return path


def read(path: Path) -> Result:
    """Raises OperatorError for what is no result."""
    try:
        with path.open("rb") as file:
            return result_from(json.loads(file.read(_LARGEST)))
    except OSError as error:
        raise OperatorError(f"{printable(str(path))} can not be read: {error.strerror}.") from None
    except (ShapeError, ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, ShapeError) else "it is no JSON"
        raise OperatorError(f"{printable(str(path))} is no result of gpudeck bench: {printable(why)}.") from None


def kept(home: Path) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """Every result, oldest first, and a sentence for each file that is none."""
    results, troubles = [], []
    try:
        paths = sorted(path for path in home.iterdir() if path.suffix == ".json" and not path.name.startswith("."))
    except OSError:
        return (), ()
    for path in paths[-_MOST:]:
        try:
            results.append(read(path))
        except OperatorError as error:
            troubles.append(str(error))
    return tuple(results), tuple(troubles)
