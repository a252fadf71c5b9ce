"""The first half of a guided run, with the embedded runner."""

from pathlib import Path

import pytest

from gpudeck.services.check.road import plan_words, walk
from gpudeck.services.check.types import Item, Outcome
from gpudeck.services.engine.drift import Drift, DriftKind
from gpudeck.services.engine.embedded import EmbeddedRunner
from gpudeck.services.errors import OperatorError
from tests.rigs.small_engines import engine, until


def test_an_engine_is_restarted_and_each_step_told(tmp_path: Path) -> None:
    runner = EmbeddedRunner(home=tmp_path / "engines")
    runner.install(engine(tmp_path, "chat", "exec sleep 1000"))
    try:
        runner.start("chat")
        before = until("it runs", lambda: (state := runner.state("chat")) and state.main_pid)
        told: list[Item] = []
        walk(runner, "chat", told.append)
        assert [(item.id, item.outcome) for item in told] == [("unit", Outcome.PASSED), ("restart", Outcome.PASSED)]
        after = runner.state("chat")
        assert after is not None
        assert after.main_pid not in (None, before)
    finally:
        runner.remove("chat")
        runner.close()


def test_an_engine_that_is_not_there(tmp_path: Path) -> None:
    runner = EmbeddedRunner(home=tmp_path / "engines")
    with pytest.raises(OperatorError):
        walk(runner, "nobody", lambda _item: None)
    runner.close()


def test_what_will_be_done_is_said_before() -> None:
    stale = (Drift(DriftKind.ON_DISK, "a", "b"),)
    assert plan_words("chat", ()) == "This restarts chat and checks it: requests in flight end."
    assert plan_words("chat", stale).startswith("This has systemd read its units anew, restarts chat")
