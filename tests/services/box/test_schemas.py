import json
from pathlib import Path

import jsonschema
import pytest

from gpudeck.services.box.boxdocument import document_of
from gpudeck.services.box.boxfile import parse_box_file
from gpudeck.services.box.frames import Frame
from gpudeck.services.box.report import box_document, topo_document
from gpudeck.services.box.reportshape import BOX_DOCUMENT, PUBLISHED, TOPO_DOCUMENT
from gpudeck.services.box.simulated import SimulatedSource, simulated_boxes
from gpudeck.services.box.types import GpuProcess, Reading, Snapshot
from tests.services.box.boxes import busy, pair
from tests.services.box.test_boxfile import SMALL, changed
from tests.services.box.write_schemas import DOCS, schema_text

WORKER = GpuProcess(4711, "VLLM::Worker_TP0", None, "vllm", "gemma", 0, 0)


def schema(name: str) -> dict[str, object]:
    document: dict[str, object] = json.loads((DOCS / name).read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("name", PUBLISHED)
def test_docs_hold_the_schema_of_the_shape(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == schema_text(name), (
        "run: python -m tests.services.box.write_schemas"
    )
    jsonschema.Draft202012Validator.check_schema(schema(name))


def test_every_box_file_here_is_valid_by_the_published_schema() -> None:
    files = [*Path(__file__).parents[2].glob("data/boxes/*.json"), *DOCS.parent.glob("services/box/boxes/*.json")]
    assert len(files) > 40
    for file in files:
        jsonschema.validate(json.loads(file.read_text(encoding="utf-8")), schema("box.schema.json"))


def test_the_example_of_the_docs_is_a_box_file() -> None:
    page = (DOCS / "box-file.md").read_text(encoding="utf-8")
    example = page.partition("```json\n")[2].partition("```")[0]
    assert len(parse_box_file(example, "box-file.md").box.gpus) == 3
    jsonschema.validate(json.loads(example), schema("box.schema.json"))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("gpu", 1),
        ("gpus", []),
        ("gpus.1.name", "…"),
        ("gpus.1.name", " "),
        ("gpus.1.index", -1),
        ("gpus.1.index", True),
        ("gpus.0.memory_mib", 0),
        ("gpus.0.memory_mib", "24 GB"),
        ("gpus.0.compute_capability", 8.9),
        ("gpus.0.pcie", {"bus": "3B"}),
        ("gpus.0.numa", 0.5),
        ("links.0.kind", "NV99"),
        ("frames", [{"at": -1, "readings": []}]),
    ],
)
def test_what_the_shape_refuses_the_schema_refuses(place: str, value: object) -> None:
    jsonschema.validate(SMALL, schema("box.schema.json"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(changed(place, value)), schema("box.schema.json"))


def test_a_recording_is_valid() -> None:
    readings = (busy(0, WORKER), Reading(1, fault="lost"))
    document = document_of(pair(), readings, (Frame(0.0, readings), Frame(1.0, readings)), 1.7e9)
    jsonschema.validate(document, schema("box.schema.json"))


@pytest.mark.parametrize("name", simulated_boxes())
def test_reports_have_their_shape(name: str) -> None:
    source = SimulatedSource(name)
    source.open()
    snapshot = source.read()
    BOX_DOCUMENT.check(box_document(snapshot), "")
    TOPO_DOCUMENT.check(topo_document(snapshot.box), "")
    jsonschema.validate(box_document(snapshot), schema("box-command.schema.json"))
    jsonschema.validate(topo_document(snapshot.box), schema("topo-command.schema.json"))


def test_a_report_of_cards_that_tell_nothing_has_its_shape() -> None:
    document = box_document(Snapshot(pair(), 1.7e9, (Reading(0), busy(1, WORKER))))
    BOX_DOCUMENT.check(document, "")
    jsonschema.validate(document, schema("box-command.schema.json"))
