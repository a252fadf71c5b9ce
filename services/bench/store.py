"""Where results are kept: one JSON file each, whole or not at all."""

import json
import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from gpudeck.services.bench.document import document, result_from
from gpudeck.services.bench.types import Result
from gpudeck.services.box.shape import ShapeError
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

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
    temporary = None
    try:
        home.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".new", dir=home)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document(result), file, indent=1)
            file.flush()
            os.fsync(descriptor)
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        raise OperatorError(f"The result can not be kept in {home}: {error.strerror}.") from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()
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
