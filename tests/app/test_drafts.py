"""Several plans: which one is in hand, and what the others are to it."""

from dataclasses import replace

from gpudeck.app.drafts import Draft, Drafts
from gpudeck.app.programs import EngineProgram
from gpudeck.app.state import DeckState, EngineInfo
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement

A, B, C = Draft("a"), Draft("b"), Draft("c")
THREE = Drafts(A).added(B).added(C)


def test_a_new_plan_comes_last_and_is_in_hand_under_a_key_of_its_own() -> None:
    assert [draft.name for draft in THREE.all] == ["a", "b", "c"]
    assert THREE.present.name == "c"
    assert len({draft.key for draft in THREE.all}) == 3


def test_plans_are_turned_round_in_their_order() -> None:
    assert THREE.turned(3).present.name == "a"
    assert THREE.turned(-1).present.name == "c"
    middle = THREE.turned(1)
    assert (middle.place, [draft.name for draft in middle.all]) == (1, ["a", "b", "c"])
    assert middle.names() == {"a", "c"}


def test_of_a_discarded_plan_the_next_takes_the_place_and_after_the_last_an_empty_one() -> None:
    assert THREE.turned(0).without_present().present.name == "b"
    assert THREE.without_present().present.name == "b"
    left = Drafts(A).without_present()
    assert left.all == (Draft(key=1),)
    assert left.present.empty


def test_only_cards_that_are_placed_are_shared() -> None:
    draft = Draft("a", placement=Placement(((2,),)), shared_gpus=frozenset({1, 2}))
    assert draft.spec(EngineProgram(("vllm",))).shared_gpus == (2,)


def running(name: str, *gpus: int, active: str = "active") -> EngineInfo:
    spec = EngineSpec(name, "/m", Placement((gpus,)), EngineOptions(port=9000))
    return EngineInfo(UnitState(name, f"vllm-{name}.service", Scope.SYSTEM, True, active, "", main_pid=7, spec=spec))


def test_beside_a_plan_stand_running_engines_and_the_other_plans() -> None:
    drafts = Drafts(Draft("mine", placement=Placement(((0,),)))).added(Draft("coder", placement=Placement(((1,),))))
    drafts = drafts.added(Draft("", placement=Placement(((3,),)))).turned(0)
    state = DeckState(
        EngineProgram(("vllm",)),
        drafts=drafts,
        engines={
            "mine": running("mine", 0),
            "chat": running("chat", 1, 2),
            "old": running("old", 0, active="inactive"),
        },
    )
    assert [spec.name for spec in state.neighbours(state.draft)] == ["chat", "coder"]
    assert state.holders(state.draft) == {1: ("chat", "coder"), 2: ("chat",)}
    assert state.ports_of_others("mine") == {9000: "old", 8000: "coder"}


def test_an_engine_that_is_planned_anew_stands_there_as_it_is_planned() -> None:
    drafts = Drafts(Draft("chat", placement=Placement(((2,),)))).added(Draft("mine"))
    state = DeckState(EngineProgram(("vllm",)), drafts=drafts, engines={"chat": running("chat", 1)})
    assert state.holders(state.draft) == {2: ("chat",)}
    assert replace(state, drafts=drafts.turned(0)).neighbours(drafts.all[0]) == ()
