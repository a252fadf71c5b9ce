"""What the simulated engine logs is read like vLLM's own: a healthy start silently, a refused one by its reason."""

from gpudeck.services.diagnosis.reader import LogReader
from tests.services.simulator.conftest import Engines


def rules(log: str) -> list[str]:
    reader = LogReader()
    reader.feed_all(log.split("\n"))
    return [found.rule for found in reader.diagnoses()]


def test_no_failure_is_read_into_a_healthy_start(engines: Engines) -> None:
    engine = engines.ready("--tensor-parallel-size", "2", CUDA_VISIBLE_DEVICES="0,1")
    engine.terminate()
    assert "Application startup complete" in engine.log
    assert rules(engine.log) == []


def test_a_refused_start_is_told(engines: Engines) -> None:
    engine = engines.start("--tensor-parallel-size", "2", CUDA_VISIBLE_DEVICES="0")
    assert engine.process.wait(20) == 1
    assert rules(engine.log) == ["world-size"]
