"""`gpudeck adopt` on unit files."""

import json
from pathlib import Path

import jsonschema
import pytest

from gpudeck.app.cli import run
from gpudeck.services.errors import OperatorError
from tests.app.write_schemas import schema_text

UNITS = Path(__file__).parents[2] / "data" / "units"


@pytest.mark.parametrize("unit", ["vllm-gemma", "vllm-tp3", "qwen-prod", "llm-docker", "vllm@coder"])
def test_a_unit_is_told_as_json(unit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["adopt", str(UNITS / f"{unit}.service"), "--demo", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads(schema_text("adopt-command.schema.json")))
    assert document["unit"] == f"{unit}.service"
    assert (document["diff"] is None) == (unit == "llm-docker")


def test_a_unit_is_told_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["adopt", str(UNITS / "vllm-tp3.service"), "--demo"]) == 0
    told = capsys.readouterr().out
    assert "  shape   TP3 PP1 on cards 1, 2\n" in told
    assert "  error    world-size: TP 3 × PP 1 asks for 3 cards, and the engine sees 2 (1, 2)." in told
    assert "\n+ExecStart=:/usr/bin/env vllm serve" in told


def test_what_is_no_unit_of_vllm_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "web.service").write_text("[Service]\nExecStart=/usr/sbin/nginx\n")
    with pytest.raises(OperatorError, match=r"web\.service runs no vLLM"):
        run(["adopt", str(tmp_path / "web.service")])
    with pytest.raises(OperatorError, match="There is no unit"):
        run(["adopt", str(tmp_path / "none.service")])
