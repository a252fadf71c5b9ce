"""How an ended run is told."""

import pytest

from gpudeck.services.engine.ending import how_it_ended
from gpudeck.services.engine.types import Scope, UnitState


@pytest.mark.parametrize(
    ("result", "status", "said"),
    [
        ("success", 0, ""),
        ("", None, ""),
        ("exit-code", 3, "exit status 3"),
        ("signal", 137, "SIGKILL, as the kernel does"),
        ("core-dump", 128 + 11, "killed by SIGSEGV."),
        ("signal", 128 + 77, "signal 77"),
        ("oom-kill", 137, "memory ran out"),
        ("timeout", 15, "longer to start or stop"),
        ("watchdog", 6, "It failed (watchdog)."),
        ("exit-code", 143, "ended with SIGTERM (exit status 143): "),
        ("exit-code", 203, "systemd could not start it (exit status 203): its program can not be executed"),
        ("exit-code", 250, "ended with exit status 250: "),
        ("exit-code", None, "It failed (exit-code)."),
    ],
)
def test_each_result_is_a_sentence(result: str, status: int | None, said: str) -> None:
    unit = UnitState("x", "vllm-x.service", Scope.SYSTEM, True, "failed", result=result, exit_status=status)
    sentence = how_it_ended(unit)
    assert said in sentence
    assert sentence == "" or sentence.endswith(".")


@pytest.mark.parametrize(("restarts", "said"), [(0, "too often in a short time"), (5, "crashed 6 times in a row")])
def test_a_crash_loop_that_systemd_ended_is_told_as_one(restarts: int, said: str) -> None:
    unit = UnitState(
        "x", "vllm-x.service", Scope.SYSTEM, True, "failed", "failed", "exit-code", restarts=restarts, gave_up=True
    )
    assert said in how_it_ended(unit)
    assert "start it again" in how_it_ended(unit)
