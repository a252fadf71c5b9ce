"""Results on disk and back."""

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import jsonschema
import pytest

from gpudeck.services.bench.document import document, result_from
from gpudeck.services.bench.store import keep, kept, new_id, read
from gpudeck.services.bench.types import Level, Result
from gpudeck.services.box.shape import ShapeError
from gpudeck.services.errors import OperatorError
from tests.app.write_schemas import schema_text
from tests.services.bench.results import result

ELSEWHERE = replace(
    result("x", (1,)),
    targets=(replace(result("x", (1,)).targets[0], spec=None, layers=(), vllm_version=None),),
    levels=(Level(4, 12, 0, {"it broke off\x1b[2J": 12}, 3.0, partial=True),),
    partial=True,
)


@pytest.mark.parametrize("one", [result("chat", (1, 2)), result("pp", (1,), (2,)), ELSEWHERE])
def test_what_is_kept_is_read_back_alike(one: Result, tmp_path: Path) -> None:
    path = keep(one, tmp_path / "bench")
    assert path.name == f"{one.id}.json"
    assert path.stat().st_mode & 0o077 == 0
    assert read(path) == one
    jsonschema.validate(json.loads(path.read_text()), json.loads(schema_text("bench-command.schema.json")))
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_all_that_are_kept_oldest_first_and_a_sentence_for_what_is_none(tmp_path: Path) -> None:
    late, early = result("a", (1,), at=15), result("b", (1,), at=11)
    for one in (late, early):
        keep(one, tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text("[]")
    (tmp_path / ".half.new").write_text("{")
    results, troubles = kept(tmp_path)
    assert results == (early, late)
    assert [trouble.split(" is no result")[0].rpartition("/")[2] for trouble in troubles] == [
        "broken.json",
        "other.json",
    ]
    assert kept(tmp_path / "nowhere") == ((), ())


def test_a_folder_that_can_not_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match="can not be kept"):
        keep(result("a", (1,)), tmp_path / "file")


@pytest.mark.parametrize(
    ("key", "value"),
    [("id", "../../etc/passwd"), ("levels", None), ("more", 1), ("targets", [{"name": "x"}]), ("limits", {})],
)
def test_a_document_of_another_shape_is_refused(key: str, value: object) -> None:
    with pytest.raises(ShapeError):
        result_from(document(result("a", (1,))) | {key: value})


def test_a_spec_that_is_none_is_refused() -> None:
    told = document(result("a", (1,)))
    told["targets"][0]["spec"] = {"name": "x"}
    with pytest.raises(ShapeError, match="spec"):
        result_from(told)


def test_an_id_names_a_file_whatever_the_engines_are_called() -> None:
    now = datetime(2026, 12, 1, 14, 3, 12, tzinfo=timezone.utc)
    assert new_id(now, ["chat", "http://[::1]:80/../x"]) == "20261201-140312-chat_http_1_80_.._x"
