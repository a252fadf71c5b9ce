from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.services.box.types import GIB, GpuProcess, Reading, Snapshot
from gpudeck.services.engine.starts.collisions import collision
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.plan.versions import NEWEST_KNOWN
from tests.services.box.boxes import pair

MODEL = str(Path("tests/data/models/llama-3.2-1b"))
CHAT = EngineSpec("chat", MODEL, Placement(((0,),)), EngineOptions(port=8000))
CODER = EngineSpec("coder", MODEL, Placement(((1,),)), EngineOptions(port=8001))


def running(spec: EngineSpec, active: str = "active", sub: str = "running") -> UnitState:
    return UnitState(spec.name, f"vllm-{spec.name}.service", Scope.SYSTEM, True, active, sub, spec=spec)


def box(*processes: GpuProcess, used: int = GIB // 2) -> Snapshot:
    return Snapshot(pair(), 0.0, (Reading(0, memory_used_bytes=used, processes=processes), Reading(1)))


def told(spec: EngineSpec, *others: UnitState, seen: Snapshot | None = None) -> str | None:
    return collision(spec, others, seen, NEWEST_KNOWN)


def test_engines_on_cards_and_ports_of_their_own_do_not_collide() -> None:
    assert told(CHAT, running(CODER), seen=box()) is None


def test_a_card_that_another_runs_on() -> None:
    other = replace(CODER, placement=Placement(((0, 1),)))
    assert told(CHAT, running(other)) == (
        "GPU 0 belongs to coder, which runs: stop that first, or plan chat on other cards, or with it shared on "
        "purpose."
    )
    assert told(CHAT, running(replace(other, shared_gpus=(0,)))) is None


@pytest.mark.parametrize(
    ("active", "sub"), [("inactive", "dead"), ("failed", "failed"), ("activating", "auto-restart")]
)
def test_what_does_not_run_is_in_nobodys_way(active: str, sub: str) -> None:
    assert told(CHAT, running(replace(CODER, placement=CHAT.placement), active, sub)) is None


def test_its_own_run_is_not_in_its_way() -> None:
    assert told(CHAT, running(CHAT)) is None


@pytest.mark.parametrize(
    ("host", "collides"), [("127.0.0.1", True), ("0.0.0.0", True), ("::", True), ("192.168.0.7", False)]
)
def test_a_port_that_another_has_or_will_have(host: str, collides: bool) -> None:
    other = replace(CODER, options=EngineOptions(host=host, port=8000))
    sentence = "Port 8000 is coder's, which runs: give chat another port, or stop that first."
    assert told(CHAT, running(other)) == (sentence if collides else None)


def test_memory_that_others_hold_and_not_its_own() -> None:
    held = GpuProcess(7, "python", memory_bytes=30 * GIB)
    sentence = told(CHAT, seen=box(held, used=30 * GIB)) or ""
    assert sentence.startswith("GPU 0")
    assert "would be free, less than the requested share" in sentence
    assert told(CHAT, seen=box(replace(held, engine="chat"), used=30 * GIB)) is None


def test_memory_is_not_judged_where_the_model_or_the_card_can_not_be_read() -> None:
    full = box(used=39 * GIB)
    assert told(replace(CHAT, model="/models/none"), seen=full) is None
    assert told(replace(CHAT, placement=Placement(((5,),))), seen=full) is None
