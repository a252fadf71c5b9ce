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


def test_keys_of_a_hand_written_unit_move_to_a_file_and_are_never_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vllm-keyed.service").write_text(
        "[Service]\nEnvironment=CUDA_VISIBLE_DEVICES=0 HF_TOKEN=hf_hush S3_SECRET_ACCESS_KEY='s3 hush'\n"
        "ExecStart=/opt/vllm/bin/vllm serve /m --api_key=k-hush --host 0.0.0.0\n"
    )
    path = str(tmp_path / "vllm-keyed.service")
    assert run(["adopt", path, "--demo"]) == 0
    told = capsys.readouterr().out
    assert run(["adopt", path, "--demo", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    for secret in ("hf_hush", "k-hush", "s3 hush", "hush"):
        assert secret not in told
        assert secret not in json.dumps(document)
    assert "+EnvironmentFile=-/etc/gpudeck/vllm-keyed.env" in told
    written = [line for line in told.splitlines() if line.startswith("+")]
    assert not [line for line in written if "api" in line or "HF_TOKEN" in line or "S3_" in line]
    assert "HF_TOKEN and S3_SECRET_ACCESS_KEY and VLLM_API_KEY would go into /etc/gpudeck/vllm-keyed.env" in told
