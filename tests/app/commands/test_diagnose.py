"""`gpudeck diagnose` over its edges: files, standard input, JSON, refusals."""

import io
import json
import sys
from pathlib import Path

import jsonschema
import pytest

from gpudeck.app.cli import run
from gpudeck.services.errors import OperatorError
from tests.app.write_schemas import schema_text

LOGS = Path(__file__).parents[2] / "data" / "logs"


class _Input:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def test_a_file_is_told_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", str(LOGS / "failed-llama-8b-kv-small.log")]) == 0
    told = capsys.readouterr().out
    assert told.startswith("context-too-long, line 52\n  | ValueError: To serve at least one request")
    assert "39456." in told


def test_standard_input_is_told_as_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Input((LOGS / "failed-graph-oom.log").read_bytes()))
    assert run(["diagnose", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads(schema_text("diagnose-command.schema.json")))
    assert [each["rule"] for each in document["diagnoses"]] == ["sampler-warm-up"]
    assert list(document["diagnoses"][0]) == ["rule", "line", "line_number", "meaning", "fix"]


def test_nothing_found_is_said_and_is_no_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["diagnose", str(LOGS / "healthy-qwen-0.5b.log")]) == 0
    assert capsys.readouterr().out == "Nothing here says that an engine failed.\n"
    monkeypatch.setattr(sys, "stdin", _Input(b"\xff\x00\x1b[31m\r\r"))
    assert run(["diagnose", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"diagnoses": []}


def test_escapes_in_a_log_never_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"PermissionError: [Errno 13] Permission denied: '/\x1b]0;gone\x07\x9b31m\xe2\x80\xae'\n")
    assert run(["diagnose", str(log)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("permission-denied, line 1\n")
    assert told.replace("\n", "").isprintable()
    assert "\u202e" not in told


def test_an_xid_is_told_by_the_boxs_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    box = tmp_path / "box.json"
    card = {"index": 0, "name": "NVIDIA L40S", "memory_mib": 46068, "compute_capability": "8.9"}
    box.write_text(json.dumps({"gpus": [card | {"pcie": {"bus": "00000000:3B:00.0"}}], "links": []}))
    log = tmp_path / "log"
    log.write_text("Dec 01 02:07:08 box kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n")
    assert run(["diagnose", str(log), "--box", str(box)]) == 0
    assert "Xid 79 on card 0 (NVIDIA L40S)" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["missing", ""])
def test_a_file_that_can_not_be_read_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(OperatorError, match=r"can not be read \(.*\): give the path of a log file, or --engine NAME\."):
        run(["diagnose", str(tmp_path / name)])


def test_a_file_and_an_engine_are_two_logs() -> None:
    with pytest.raises(OperatorError, match="give one of them"):
        run(["diagnose", "log", "--engine", "chat"])
