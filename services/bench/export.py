"""What was measured, as files for other programs."""

import json
from pathlib import Path

from gpudeck.services.bench.document import document
from gpudeck.services.bench.report import as_csv, as_markdown
from gpudeck.services.bench.store import kept
from gpudeck.services.errors import OperatorError
from gpudeck.services.whole_file import umask_mode, write_whole

NAME = "gpudeck-bench"


def write_all(home: Path, folder: Path) -> tuple[Path, ...]:
    """Write the results that are kept in `home` as CSV, JSON and Markdown into `folder`, over those of before.

    Raises OperatorError where there are none, or where nothing can be written there.
    """
    results, _troubles = kept(home)
    if not results:
        raise OperatorError("Nothing was measured here yet, so that there is nothing to write.")
    texts = {
        "csv": as_csv(results),
        "json": json.dumps({"results": [document(result) for result in results]}, indent=1) + "\n",
        "md": as_markdown(results),
    }
    written = []
    for kind, text in texts.items():
        path = folder / f"{NAME}.{kind}"
        try:
            write_whole(path, text.encode(), mode=umask_mode())
        except OSError as error:
            raise OperatorError(f"{path} can not be written: {error.strerror}.") from None
        written.append(path)
    return tuple(written)
