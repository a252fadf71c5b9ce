import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpudeck.services.engine.phases import Phase
from gpudeck.services.engine.starts.kept import Kept, StartBook
from gpudeck.services.engine.starts.times import PhaseTimes
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement

SPEC = EngineSpec("chat", "/models/chat", Placement(((0,),)))
OTHER = replace(SPEC, options=EngineOptions(max_model_len=4096))
TIMES = PhaseTimes(((Phase.LOADING, 31.0), (Phase.COMPILING, 12.5)))


def state(spec: EngineSpec = SPEC, since: float = 1000.0, *, managed: bool = True) -> UnitState:
    return UnitState("chat", "vllm-chat.service", Scope.SYSTEM, managed, "active", since=since, spec=spec)


@pytest.fixture
def book(tmp_path: Path) -> StartBook:
    return StartBook(tmp_path / "starts")


def test_nothing_is_known_of_an_engine_that_never_was_ready(book: StartBook) -> None:
    assert book.of(state()) == Kept()


def test_times_are_kept_by_spec(book: StartBook) -> None:
    book.keep(state(), TIMES)
    book.keep(state(OTHER, 2000.0), PhaseTimes(((Phase.LOADING, 5.0),)))
    kept = book.of(state())
    assert kept.times(SPEC) == (TIMES,)
    assert kept.times(OTHER) == (PhaseTimes(((Phase.LOADING, 5.0),)),)
    assert kept.times(replace(SPEC, model="/models/never")) == ()
    assert kept.present(1000.4) == TIMES
    assert kept.present(1500.0) is None


def test_two_who_saw_one_start_keep_it_once(book: StartBook) -> None:
    book.keep(state(), TIMES)
    book.keep(state(since=1000.6), TIMES)
    assert book.of(state()).times(SPEC) == (TIMES,)


def test_the_spec_before_the_one_that_runs_is_what_one_goes_back_to(book: StartBook) -> None:
    book.keep(state(), TIMES)
    assert book.of(state()).other_than(SPEC) is None
    assert book.of(state()).other_than(OTHER) == SPEC  # OTHER was written since, and may never have run
    book.keep(state(OTHER, 2000.0), TIMES)
    assert book.of(state()).other_than(OTHER) == SPEC
    book.keep(state(SPEC, 3000.0), TIMES)
    assert book.of(state()).other_than(SPEC) == OTHER


def test_a_unit_that_others_wrote_has_no_spec_to_go_back_to(book: StartBook) -> None:
    book.keep(state(managed=False), TIMES)
    assert book.of(state()).times(SPEC) == (TIMES,)
    assert book.of(state()).other_than(None) is None


def test_a_run_that_was_found_running_leaves_only_its_spec(book: StartBook) -> None:
    book.keep(state(), PhaseTimes())
    assert book.of(state()).times(SPEC) == ()
    assert book.of(state()).other_than(OTHER) == SPEC


def test_the_file_stays_small(book: StartBook) -> None:
    for run in range(60):
        book.keep(state(since=1000.0 * run), TIMES)
    assert len(book.of(state()).starts) == 20


@pytest.mark.parametrize("text", ["", "{", "[]", '{"starts": 3, "ready": []}', '{"starts": [], "ready": ["{}"]}'])
def test_a_broken_file_counts_as_none_and_is_written_anew(book: StartBook, tmp_path: Path, text: str) -> None:
    book.keep(state(), TIMES)
    path = tmp_path / "starts" / "system-vllm-chat.json"
    path.write_text(text)
    assert book.of(state()) == Kept()
    book.keep(state(), TIMES)
    assert json.loads(path.read_text())["starts"]


def test_where_nothing_can_be_written_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    StartBook(tmp_path / "file").keep(state(), TIMES)


def test_nothing_is_left_half_written_and_nothing_after_the_engine_is_gone(book: StartBook, tmp_path: Path) -> None:
    book.keep(state(), TIMES)
    assert {path.name for path in (tmp_path / "starts").iterdir()} == {
        "system-vllm-chat.json",
        "system-vllm-chat.lock",
    }
    book.forget(state())
    assert list((tmp_path / "starts").iterdir()) == []
