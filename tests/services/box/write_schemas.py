"""Writes the JSON Schemas of docs/ from the shapes: `python -m tests.services.box.write_schemas`."""

import json
from pathlib import Path

from gpudeck.services.box.reportshape import PUBLISHED
from gpudeck.services.box.shape import published

DOCS = Path(__file__).parents[3] / "docs"


def schema_text(file_name: str) -> str:
    shape, title = PUBLISHED[file_name]
    return json.dumps(published(shape, title), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in PUBLISHED:
        (DOCS / name).write_text(schema_text(name), encoding="utf-8")
