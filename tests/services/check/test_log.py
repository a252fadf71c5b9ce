"""Errors that repeat, and those that do not."""

from gpudeck.services.check.log import log_item
from gpudeck.services.check.types import Outcome

INFO = "(APIServer pid=1) INFO 12-01 02:07:08 [loggers.py:114] Engine 000: Avg prompt throughput: 1.0 tokens/s"


def error(second: int, text: str = "shm_broadcast: no message for 60 seconds") -> str:
    return f"(EngineCore_DP0 pid=73) ERROR 12-01 02:07:{second:02} [shm.py:68] {text}"


def test_a_healthy_log() -> None:
    item = log_item([INFO] * 4)
    assert (item.outcome, item.words) == (Outcome.PASSED, "4 lines")


def test_an_error_that_comes_again_and_again() -> None:
    item = log_item([INFO, *(error(second, f"request {second} failed\x07") for second in range(5))])
    assert item.outcome is Outcome.FAILED
    assert item.words == "5 times: request 0 failed^G"


def test_one_traceback_repeats_its_lines_and_is_one_error() -> None:
    item = log_item([INFO, *(error(8, "    return func(*args, **kwargs)") for _ in range(9))])
    assert item.outcome is Outcome.NOTE


def test_errors_without_a_level() -> None:
    assert log_item(["host:7:7 [0] NCCL WARN Call to ibv failed"] * 3).outcome is Outcome.FAILED
    assert log_item(["RuntimeError: CUDA error: an illegal memory access"] * 2).outcome is Outcome.NOTE


def test_a_log_that_is_not_there() -> None:
    assert log_item([]).outcome is Outcome.SKIPPED
