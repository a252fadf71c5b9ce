"""What the simulated engine logs is a healthy start, also for the reader of failures."""

from gpudeck.services.diagnosis.reader import LogReader
from tests.services.simulator.conftest import Engines


def test_no_failure_is_read_into_the_simulated_log(engines: Engines) -> None:
    engine = engines.ready("--tensor-parallel-size", "2")
    engine.terminate()
    reader = LogReader()
    reader.feed_all(engine.log.split("\n"))
    assert "Application startup complete" in engine.log
    assert reader.diagnoses() == ()
