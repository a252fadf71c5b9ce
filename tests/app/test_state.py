"""The pure steps from one state of the panel to the next."""

from dataclasses import replace

import pytest

from gpudeck.app import state as states
from gpudeck.app.drafts import Draft, Drafts
from gpudeck.app.programs import EngineProgram
from gpudeck.app.state import DeckState, EngineInfo
from gpudeck.services.box.types import GIB, MIB, GpuProcess, Reading, Snapshot
from gpudeck.services.engine.phases import Phase, Standing
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.plan.types import EngineOptions, Placement
from tests.services.box.boxes import pair

EMPTY = DeckState(EngineProgram(("/opt/vllm",), (("A", "b"),)))


def unit(name: str, active: str = "active", **more: object) -> UnitState:
    fields: dict[str, object] = {"sub": "", "main_pid": 7 if active == "active" else None}
    return UnitState(name, f"vllm-{name}.service", Scope.SYSTEM, True, active, **(fields | more))  # type: ignore[arg-type]


def with_(*units: UnitState) -> DeckState:
    return states.with_units(EMPTY, units)


@pytest.mark.parametrize(
    ("active", "sub", "ready", "busy", "word"),
    [
        ("inactive", "dead", False, None, "stopped"),
        ("active", "running", False, None, "starting"),
        ("active", "running", True, None, "ready"),
        ("reloading", "reload", True, None, "ready"),
        ("activating", "start", False, None, "starting"),
        ("activating", "auto-restart", False, None, "restarting"),
        ("activating", "auto-restart-queued", False, None, "restarting"),
        ("deactivating", "stop-sigterm", True, None, "stopping"),
        ("failed", "failed", False, None, "failed"),
        ("active", "running", True, "stopping", "stopping"),
    ],
)
def test_one_word_for_each_state(active: str, sub: str, ready: bool, busy: str | None, word: str) -> None:
    assert EngineInfo(unit("x", active, sub=sub), ready=ready, busy=busy).word == word


def test_why_it_does_not_run() -> None:
    failed = EngineInfo(unit("x", "failed", result="exit-code", exit_status=3))
    assert "exit status 3" in failed.why
    assert EngineInfo(unit("x", "inactive", result="exit-code", exit_status=3)).why == ""
    assert EngineInfo(unit("x")).why == ""


def test_units_that_arrive_replace_all_and_keep_what_is_known() -> None:
    state = states.with_engine(with_(unit("a"), unit("b")), "a", ready=True, served=("m",))
    state = states.with_units(state, (unit("a", restarts=1), unit("c")))
    assert list(state.engines) == ["a", "c"]
    assert (state.engines["a"].ready, state.engines["a"].served, state.engines["a"].unit.restarts) == (True, ("m",), 1)


def test_another_process_is_another_start() -> None:
    known = states.with_engine(with_(unit("a")), "a", ready=True, standing=Standing(Phase.READY), busy="restarting")
    again = states.with_unit(known, unit("a", main_pid=8)).engines["a"]
    assert (again.ready, again.standing, again.busy) == (False, Standing(), "restarting")


def test_an_engine_that_ended_answers_no_more_but_keeps_its_reason() -> None:
    known = states.with_engine(with_(unit("a")), "a", ready=True, served=("m",), standing=Standing(Phase.FAILED))
    ended = states.with_unit(known, unit("a", "failed")).engines["a"]
    assert (ended.ready, ended.served, ended.standing.phase) == (False, (), Phase.FAILED)


def test_a_foreign_unit_that_does_not_run_is_not_brought_up_by_a_signal() -> None:
    foreign = replace(unit("f", "inactive"), managed=False)
    assert states.with_unit(EMPTY, foreign) is EMPTY
    assert "f" in states.with_unit(with_(replace(unit("f"), managed=False)), foreign).engines


def test_an_engine_whose_unit_is_gone_goes() -> None:
    assert states.with_unit(with_(unit("a")), replace(unit("a", "inactive"), gone=True)).engines == {}


def test_an_engine_stays_selected_while_there_is_one_and_a_running_one_comes_first() -> None:
    state = with_(unit("a", "inactive"), unit("b"), unit("c"))
    assert state.selected == "b"
    assert state.engine is state.engines["b"]
    state = states.without_engine(replace(state, selected="c"), "a")
    assert state.selected == "c"
    assert states.without_engine(state, "c").selected == "b"
    gone = states.without_engine(states.without_engine(state, "c"), "b")
    assert (gone.selected, gone.engine) == (None, None)


def test_a_change_of_an_engine_that_is_gone_is_nothing() -> None:
    assert states.with_engine(EMPTY, "a", ready=True) is EMPTY


def test_memory_in_use_leaves_out_the_drafted_engine_and_does_not_flicker() -> None:
    own, other = GpuProcess(1, "w", 10 * GIB, "me", "a", 0, 0), GpuProcess(2, "x", 2 * GIB)
    reading = Reading(0, memory_used_bytes=12 * GIB + 5 * MIB, processes=(own, other))
    state = replace(EMPTY, snapshot=Snapshot(pair(), 0.0, (reading, Reading(1))), drafts=Drafts(Draft(name="a")))
    assert state.used() == {0: 2 * GIB, 1: 0}
    moved = replace(reading, memory_used_bytes=12 * GIB + 40 * MIB)
    assert replace(state, snapshot=Snapshot(pair(), 1.0, (moved, Reading(1)))).used() == state.used()
    assert replace(state, drafts=Drafts(Draft(name="b"))).used()[0] == 12 * GIB
    assert EMPTY.used() == {}


def test_ports_of_other_engines() -> None:
    spec = EMPTY.draft.spec(EMPTY.program)
    state = with_(
        unit("a", spec=replace(spec, options=EngineOptions(port=8001))), unit("b", spec=spec), unit("foreign")
    )
    assert state.ports_of_others("") == {8001: "a", 8000: "b"}
    assert state.ports_of_others("a") == {8000: "b"}


def test_a_draft_is_the_spec_that_would_run() -> None:
    draft = Draft("n", None, Placement(((1, 0),)), EngineOptions(port=9), (3, 4))
    spec = draft.spec(EMPTY.program)
    assert (spec.name, spec.model, spec.placement.gpus, spec.options.port) == ("n", "", (1, 0), 9)
    assert (spec.layer_partition, spec.program, spec.environment) == ((3, 4), ("/opt/vllm",), (("A", "b"),))


def test_each_engine_keeps_a_colour_of_its_own() -> None:
    def unit(name: str, pid: int | None = None) -> UnitState:
        return UnitState(name, f"vllm-{name}.service", Scope.SYSTEM, True, "active", main_pid=pid)

    state = states.with_units(DeckState(program=EngineProgram(("vllm",))), (unit("a"), unit("b")))
    assert [info.colour for info in state.engines.values()] == [0, 1]
    state = states.with_unit(state, unit("0-first"))
    state = states.with_unit(state, unit("b", 7))
    assert {name: info.colour for name, info in state.engines.items()} == {"a": 0, "b": 1, "0-first": 2}
    state = states.with_units(state, (unit("b"), unit("c")))
    assert {name: info.colour for name, info in state.engines.items()} == {"b": 1, "c": 0}
    state = states.with_unit(state, unit("d"))
    assert state.engines["d"].colour == 2
