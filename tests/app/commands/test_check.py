"""`gpudeck check` as a script runs it, against the demo's engine."""

import json
from pathlib import Path

import jsonschema
import pytest

from tests.app.write_schemas import DOCS
from tests.rigs.as_command import Gpudeck
from tests.rigs.at_the_panel import free_port


@pytest.fixture
def chat(gpudeck: Gpudeck) -> str:
    """A demo engine of two stages that is ready."""
    words = ("--stage", "1", "--stage", "2", "--name", "chat", "--port", str(free_port()), "--yes", "--demo")
    assert gpudeck("install", "demo-llama-3.1-8b", *words).code == 0
    assert gpudeck("start", "chat", "--demo").code == 0
    return "chat"


def test_the_list_of_an_engine_and_its_cards(gpudeck: Gpudeck, chat: str, home: Path) -> None:
    done = gpudeck("check", "--demo")
    assert done.code == 0, done.out + done.err
    for words in ("models listed", "Chinese", "stream came", "every card was busy meanwhile: GPU 1 ", "curl -sS"):
        assert words in done.out
    assert "FAIL" not in done.out

    told = gpudeck("check", chat, "--demo", "--json")
    document = json.loads(told.out)
    jsonschema.validate(document, json.loads((DOCS / "check-command.schema.json").read_text()))
    assert (told.code, document["passed"]) == (0, True)

    walked = gpudeck("check", chat, "--demo", "--restart", "--yes")
    assert walked.code == 0, walked.out + walked.err
    steps = [line[6:].split(":")[0] for line in walked.out.splitlines() if line[:4] in ("ok  ", "note")]
    assert steps[:4] == ["unit", "restarted", "ready, by its log and its port", "models listed"]


def test_refusals(gpudeck: Gpudeck) -> None:
    for words, said in (
        (("check", "--demo"), "No engine runs here"),
        (("check", "nobody", "--demo"), "No engine is called nobody"),
        (("check", "a", "--url", "http://x"), "are two engines"),
        (("check", "http://127.0.0.1:1", "--restart"), "for engines of this machine"),
        (("check", "--restart", "--demo"), "needs the name"),
    ):
        done = gpudeck(*words)
        assert done.refused, words
        assert said in done.err


def test_an_engine_that_does_not_answer_fails(gpudeck: Gpudeck) -> None:
    done = gpudeck("check", "--url", "http://127.0.0.1:1")
    assert done.code == 1
    assert done.out.startswith("FAIL  models listed: Nothing answers")
