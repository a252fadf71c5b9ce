"""The commands among the demo's own models and boxes."""

import json
from pathlib import Path

import pytest

from gpudeck.services.simulator.models import CONFIGS
from tests.rigs.as_command import Gpudeck
from tests.rigs.at_the_panel import free_port

MODEL = "demo-llama-3.1-8b"


def test_a_demos_model_is_there_for_its_bare_name(gpudeck: Gpudeck) -> None:
    done = gpudeck("plan", "--demo", MODEL, "--json")
    assert (done.code, done.err) == (0, "")
    best = json.loads(done.out)["placements"][0]
    assert "model-without-weights" not in {each["rule"] for each in best["findings"]}
    at = best["argv"].index("--load-format")
    assert best["argv"][at + 1] == "dummy"


@pytest.mark.parametrize("command", ["plan", "unit", "install"])
def test_a_wrong_name_lists_the_demos_models(gpudeck: Gpudeck, command: str) -> None:
    done = gpudeck(command, "--demo", "llama\x1b[2J")
    assert done.refused
    assert done.err == f"gpudeck: The demo has no model llama^[[2J: take one of {', '.join(CONFIGS)}.\n"


def test_a_directory_that_lies_here_is_meant_before_the_demos(
    gpudeck: Gpudeck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "mine has no config.json" in gpudeck("plan", "--demo", "mine").err


def test_the_simulated_engine_serves_what_was_installed(gpudeck: Gpudeck) -> None:
    port = str(free_port())
    assert gpudeck("install", "--demo", MODEL, "--stage", "1", "--name", "served", "--port", port, "--yes").code == 0
    done = gpudeck("start", "served", "--demo")
    assert (done.code, done.err) == (0, "")


def test_a_box_of_no_such_name_is_told_before_the_terminal_is_looked_at(gpudeck: Gpudeck) -> None:
    assert "There is no demo box called nosuch: take one of mixed, " in gpudeck("--demo=nosuch").err
    assert "The panel needs a terminal" in gpudeck("--demo").err
