"""The engine desk with the real embedded runner: threads, messages, one act at a time."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from textual.message import Message

from gpudeck.app.engine_desk import NO_RUNNER, EngineDesk
from gpudeck.app.messages import (
    ActBegan,
    ActEnded,
    LogsArrived,
    PreviewArrived,
    RunnerFailed,
    RunnerOpened,
    UnitChanged,
    UnitsArrived,
)
from gpudeck.services.engine import choose
from gpudeck.services.engine.types import Runner
from gpudeck.services.errors import OperatorError
from tests.rigs.small_engines import engine, until

Kind = TypeVar("Kind", bound=Message)


class Posted:
    """What the desk told the screen."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def __call__(self, message: Message) -> None:
        self.messages.append(message)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [message for message in self.messages if isinstance(message, kind)]

    def wait(self, kind: type[Kind], true: Callable[[Kind], object] = lambda message: True) -> Kind:
        return until(f"no {kind.__name__}", lambda: [message for message in self.of(kind) if true(message)])[-1]


@pytest.fixture
def posted() -> Posted:
    return Posted()


@pytest.fixture
def desk(home: Path, posted: Posted) -> Iterator[EngineDesk]:
    desk = EngineDesk(lambda: choose.open_runner(demo=True), posted)
    desk.open()
    posted.wait(UnitsArrived)
    yield desk
    desk.close()


def test_it_opens_a_runner_and_tells_its_engines(desk: EngineDesk, posted: Posted) -> None:
    assert posted.of(RunnerOpened)[0].description.startswith("embedded: ")
    assert posted.of(UnitsArrived)[0].units == ()
    assert desk.trouble is None


def test_before_it_is_open_and_where_there_is_none_it_says_so(home: Path, posted: Posted) -> None:
    def refuse() -> Runner:
        raise OperatorError("There is no runner.")

    desk = EngineDesk(refuse, posted)
    assert desk.trouble == NO_RUNNER
    with pytest.raises(OperatorError, match="still looking for systemd"):
        desk.act("x", "starting", lambda runner: None)
    desk.open()
    assert posted.wait(RunnerFailed).sentence == "There is no runner."
    assert desk.trouble == "There is no runner."
    with pytest.raises(OperatorError, match="There is no runner"):
        desk.follow("x")
    desk.close()


def test_a_preview_is_what_would_be_written(desk: EngineDesk, posted: Posted, tmp_path: Path) -> None:
    spec = engine(tmp_path, "new", "exit")
    desk.preview(spec)
    message = posted.wait(PreviewArrived)
    assert message.spec is spec
    assert message.preview is not None
    assert str(tmp_path / "new.sh") in message.preview.text
    desk.preview(engine(tmp_path, "b", "exit", model="a\nb"))
    refused = posted.wait(PreviewArrived, lambda message: message.failure)
    assert refused.preview is None


def test_an_act_is_told_from_its_beginning_to_its_end(desk: EngineDesk, posted: Posted, tmp_path: Path) -> None:
    spec = engine(tmp_path, "runs", "echo one; echo two; exec sleep 1000")

    def start(runner: Runner) -> None:
        runner.install(spec)
        runner.start("runs")

    desk.act("runs", "starting", start)
    ended = posted.wait(ActEnded)
    assert (ended.name, ended.doing, ended.failure) == ("runs", "starting", None)
    assert [(began.name, began.doing) for began in posted.of(ActBegan)] == [("runs", "starting")]
    posted.wait(UnitsArrived, lambda message: [unit.active for unit in message.units] == ["active"])
    posted.wait(UnitChanged, lambda message: message.unit.active == "active")
    backlog = desk.follow("runs")
    assert desk.following == {"runs"}
    posted.wait(LogsArrived)
    until("its log does not come", lambda: len(backlog) >= 2)
    assert [line.text for line in backlog.take(2)] == ["one", "two"]
    desk.unfollow("runs")
    assert desk.following == set()
    desk.remove_all(["runs", "nobody"])
    posted.wait(UnitChanged, lambda message: message.unit.gone)


def test_one_engine_has_one_act_at_a_time(desk: EngineDesk, posted: Posted) -> None:
    go = threading.Event()
    desk.act("a", "starting", lambda runner: go.wait(20))
    with pytest.raises(OperatorError, match="a is busy"):
        desk.act("a", "stopping", lambda runner: None)
    desk.act("b", "starting", lambda runner: None)
    posted.wait(ActEnded, lambda message: message.name == "b")
    go.set()
    posted.wait(ActEnded, lambda message: message.name == "a")
    desk.act("a", "stopping", lambda runner: None)
    posted.wait(ActEnded, lambda message: message.doing == "stopping")


def test_a_refusal_and_a_defect_are_told_and_free_the_engine(desk: EngineDesk, posted: Posted) -> None:
    def refuse(runner: Runner) -> None:
        raise OperatorError("No.")

    def break_down(runner: Runner) -> None:
        raise ZeroDivisionError

    desk.act("a", "starting", refuse)
    assert posted.wait(ActEnded).failure == "No."
    desk.act("a", "stopping", break_down)
    assert "a defect of gpudeck" in (posted.wait(ActEnded, lambda message: message.doing == "stopping").failure or "")
    desk.act("a", "removing", lambda runner: None)
    assert posted.wait(ActEnded, lambda message: message.doing == "removing").failure is None


def test_closing_touches_no_engine_and_waits_for_no_act(desk: EngineDesk, posted: Posted, tmp_path: Path) -> None:
    spec = engine(tmp_path, "stays", "exec sleep 1000")

    def start(runner: Runner) -> None:
        runner.install(spec)
        runner.start("stays")

    desk.act("stays", "starting", start)
    posted.wait(ActEnded)
    desk.follow("stays")
    hangs = threading.Event()
    desk.act("stays", "stopping", lambda runner: hangs.wait(600))
    desk.close()
    assert desk.following == set()
    assert [state.active for state in choose.open_runner(demo=True).engines()] == ["active"]
    hangs.set()


def test_a_runner_that_can_not_be_had_at_first_is_had_later(
    home: Path, posted: Posted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpudeck.app.engine_desk._REOPEN_S", 0.01)
    answers = ["The bus is dead.", "The bus is dead.", "Another trouble."]

    def open_runner() -> Runner:
        if answers:
            raise OperatorError(answers.pop(0))
        return choose.open_runner(demo=True)

    desk = EngineDesk(open_runner, posted, reopen=True)
    desk.open()
    posted.wait(RunnerOpened)
    # Each trouble is told once, however often it is met.
    assert [message.sentence for message in posted.of(RunnerFailed)] == ["The bus is dead.", "Another trouble."]
    assert desk.trouble is None
    desk.close()


def test_a_recorded_box_is_not_asked_for_a_runner_again(home: Path, posted: Posted) -> None:
    asked = []

    def open_runner() -> Runner:
        asked.append(1)
        raise OperatorError("This is a recorded box.")

    desk = EngineDesk(open_runner, posted)
    desk.open()
    posted.wait(RunnerFailed)
    until("it tries again", lambda: not [each for each in threading.enumerate() if each.name == "open-runner"])
    assert asked == [1]
    desk.close()
