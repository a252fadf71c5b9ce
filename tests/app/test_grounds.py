"""What verdicts rest on beside box, model and plan: learned away from the screen, and kept."""

import json
import queue
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.app.grounds import Grounds
from gpudeck.app.grounds_desk import GroundsDesk
from gpudeck.app.messages import GroundsLearned
from gpudeck.services.box.types import MIB, Box, Ecc, GpuProcess, Reading, Snapshot
from gpudeck.services.plan.types import EngineOptions
from tests.app.panels import Desk, demo, panel


def snapshot(*readings: Reading) -> Snapshot:
    return Snapshot(Box(()), 0.0, readings)


def test_of_a_reading_only_what_lasts_is_kept() -> None:
    worn = Reading(0, utilization_percent=3, mig_enabled=True, ecc=Ecc(enabled=False))
    first = Grounds().with_snapshot(snapshot(worn, Reading(1)))
    assert first.readings == (Reading(0, mig_enabled=True, ecc=Ecc(enabled=False)), Reading(1))
    # What nobody asked for this time is as it was, and what is the same makes no other object.
    assert first.with_snapshot(snapshot(replace(worn, ecc=None, utilization_percent=90), Reading(1))) is first
    held = first.with_snapshot(snapshot(replace(worn, processes=(GpuProcess(7, "x", 300 * MIB),)), Reading(1)))
    assert held.with_snapshot(snapshot(replace(worn, processes=(GpuProcess(7, "x", 310 * MIB),)), Reading(1))) is held
    assert held.readings[0].processes[0].name == "x"
    lost = first.with_snapshot(snapshot(Reading(0, fault="GPU is lost"), Reading(1)))
    assert lost.readings[0].fault == "GPU is lost"


def learned(ask: Callable[[GroundsDesk], None]) -> Grounds:
    arrived: queue.Queue[object] = queue.Queue()
    ask(GroundsDesk(arrived.put))
    message = arrived.get(timeout=20)
    assert isinstance(message, GroundsLearned)
    return message.step(Grounds(keyed=frozenset({"chat"})))


def test_whether_an_engine_has_a_key() -> None:
    assert learned(lambda desk: desk.key("coder", "coder".__eq__)).keyed == {"chat", "coder"}
    assert learned(lambda desk: desk.key("chat", "coder".__eq__)).keyed == frozenset()


def test_a_tokenizers_size(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 6}}}))
    assert learned(lambda desk: desk.tokenizer(str(tmp_path))).tokenizers == {str(tmp_path): 7}


def rules(desk: Desk) -> set[str]:
    return {finding.rule for finding in desk.panel.state.judgement.findings}


@pytest.mark.panel
async def test_the_verdict_on_the_board_knows_engine_tokenizer_cards_and_bridges(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 6}}}))
    setup = demo()
    async with panel(replace(setup, program=replace(setup.program, cuda="99.0"))) as desk:
        await desk.choose_model("demo-llama-3.1-8b")
        await desk.place((1,))
        app = desk.panel
        assert "driver-too-old" in rules(desk)
        app.draft_changed(options=EngineOptions(extra=("--tokenizer", str(tmp_path))))
        await desk.until(lambda: "tokenizer-other-model" in rules(desk), "word on the tokenizer")
        app.draft_changed(options=EngineOptions(host="0.0.0.0"))
        await desk.until(lambda: "open-to-network" in rules(desk), "word on the open port")
        keys = home / "key"
        keys.write_text("VLLM_API_KEY=abc\n")
        monkeypatch.setattr(app.engine_desk, "has_key", lambda _name: keys.exists())
        app.draft_changed(options=EngineOptions(host="0.0.0.0", port=8007))
        await desk.until(lambda: "open-to-network" not in rules(desk), "word on the key")
        await desk.until(lambda: any(reading.modes for reading in app.state.grounds.readings), "the cards' modes")
        assert not app._demands.get("plan"), "health goes on being read"
