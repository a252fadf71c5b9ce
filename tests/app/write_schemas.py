"""Writes the JSON Schemas of several commands: `python -m tests.app.write_schemas`."""

import json
from pathlib import Path

from gpudeck.services.adoption.report import ADOPT_DOCUMENT
from gpudeck.services.bench.document import RESULT_DOCUMENT, RESULTS_DOCUMENT
from gpudeck.services.box.shape import published
from gpudeck.services.check.report import CHECK_DOCUMENT
from gpudeck.services.diagnosis.report import DIAGNOSE_DOCUMENT
from gpudeck.services.doctor.report import DOCTOR_DOCUMENT
from gpudeck.services.engine import reportshape

DOCS = Path(__file__).parents[2] / "docs"
PUBLISHED = {
    "adopt-command.schema.json": (ADOPT_DOCUMENT, "gpudeck adopt --json"),
    **reportshape.PUBLISHED,
    "bench-command.schema.json": (RESULT_DOCUMENT, "gpudeck bench --json, and a result as it is kept"),
    "bench-results.schema.json": (RESULTS_DOCUMENT, "gpudeck bench --export json"),
    "check-command.schema.json": (CHECK_DOCUMENT, "gpudeck check --json"),
    "doctor-command.schema.json": (DOCTOR_DOCUMENT, "gpudeck doctor --json"),
    "diagnose-command.schema.json": (DIAGNOSE_DOCUMENT, "gpudeck diagnose --json"),
}


def schema_text(file_name: str) -> str:
    shape, title = PUBLISHED[file_name]
    return json.dumps(published(shape, title), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in PUBLISHED:
        (DOCS / name).write_text(schema_text(name), encoding="utf-8")
