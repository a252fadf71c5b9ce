from datetime import datetime

import pytest

from gpudeck.services.engine.loglines import LogParts, stamped_at, take_apart


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (
            "(EngineCore pid=5822) INFO 12-01 01:23:08 [core.py:133] Initializing a V1 LLM engine",
            LogParts("Initializing a V1 LLM engine", "EngineCore", 5822, "INFO", "12-01 01:23:08", "core.py:133"),
        ),
        (
            "(Worker_PP1_TP0 pid=4) ERROR 12-01 01:23:24 [v1/executor/x.py:1063] AssertionError",
            LogParts("AssertionError", "Worker_PP1_TP0", 4, "ERROR", "12-01 01:23:24", "v1/executor/x.py:1063"),
        ),
        (
            "(VllmWorker rank=0 pid=73) INFO 03-11 15:03:12 [file.py:123] text",
            LogParts("text", "VllmWorker rank=0", 73, "INFO", "03-11 15:03:12", "file.py:123"),
        ),
        (
            "INFO 01-31 10:27:34 model_runner.py:1115] Loading model weights took 3.7 GB",
            LogParts("Loading model weights took 3.7 GB", "", None, "INFO", "01-31 10:27:34", "model_runner.py:1115"),
        ),
        ("(APIServer pid=9) INFO:     Shutting down", LogParts("Shutting down", "APIServer", 9, "INFO")),
        ("INFO:     Started server process [1]", LogParts("Started server process [1]", level="INFO")),
        ("\x1b[36m(EngineCore pid=7)\x1b[0;0m \x1b[31mboom\x1b[0m", LogParts("boom", "EngineCore", 7)),
        ("(not a writer) INFO", LogParts("(not a writer) INFO")),
        ("", LogParts("")),
    ],
)
def test_a_line_is_taken_apart(line: str, parts: LogParts) -> None:
    assert take_apart(line) == parts


def test_a_stamp_without_a_year_takes_the_nearest() -> None:
    new_year = datetime(2027, 1, 1, 0, 0, 5).astimezone().timestamp()
    assert stamped_at("12-31 23:59:55", new_year) == new_year - 10
    assert stamped_at("01-01 00:00:06", new_year) == new_year + 1


def test_what_is_no_date_has_no_time() -> None:
    assert stamped_at("13-45 99:00:00", 0.0) is None
