"""docs/ holds the schema of each document that commands on engines print."""

import json

import jsonschema
import pytest

from gpudeck.app.commands.engines import document
from gpudeck.services.box.shape import ShapeError
from gpudeck.services.engine.reportshape import ENGINE_DOCUMENT
from gpudeck.services.engine.types import Scope, UnitState
from tests.app.write_schemas import DOCS, PUBLISHED, schema_text


@pytest.mark.parametrize("name", PUBLISHED)
def test_docs_hold_the_schema_of_the_shape(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    assert text == schema_text(name), "run: python -m tests.app.write_schemas"
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("active", ["active", "reloading", "inactive", "failed", "activating", "deactivating"])
@pytest.mark.parametrize("scope", Scope)
def test_a_unit_that_others_wrote_has_the_shape(active: str, scope: Scope) -> None:
    found = document(UnitState("x", "vllm-x.service", scope, False, active, since=1.7e9))
    ENGINE_DOCUMENT.check(found, "")
    jsonschema.validate(found, json.loads(schema_text("status-command.schema.json")))
    assert found["since"] == "2023-11-14T22:13:20+00:00"


@pytest.mark.parametrize("change", [{"state": "up"}, {"ready": 1}, {"port": 0}, {"name": None}, {"more": 1}])
def test_what_the_shape_refuses_the_schema_refuses(change: dict[str, object]) -> None:
    wrong = document(UnitState("x", "vllm-x.service", Scope.SYSTEM, True, "active")) | change
    with pytest.raises(ShapeError):
        ENGINE_DOCUMENT.check(wrong, "")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, json.loads(schema_text("status-command.schema.json")))
