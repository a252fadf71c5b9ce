"""Processes on a card tied to engines of the embedded runner, which have no control group of their own."""

import os
import sys
from pathlib import Path

from gpudeck.services.engine.embedded import EmbeddedRunner
from gpudeck.services.plan.types import EngineSpec, Placement
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.rigs.on_the_card import TITLED, holders, pids_told
from tests.rigs.small_engines import until

TITLES = ("VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1")


def test_workers_without_an_environment_are_tied_by_their_parent(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    runner = EmbeddedRunner(home=tmp_path / "engines")
    program = (sys.executable, str(TITLED), *TITLES)
    runner.install(EngineSpec("coder", "/models/none", Placement(((0, 1),)), program=program))
    runner.start("coder")
    try:
        workers = until(
            "no workers",
            lambda: (
                told
                if len(told := pids_told("\n".join(line.text for line in runner.history("coder")))) == len(TITLES)
                else {}
            ),
        )
        for pid in workers.values():
            assert b"GPUDECK_UNIT" not in Path(f"/proc/{pid}/environ").read_bytes()
        found = {each.name: each for each in holders(fake_nvml, [*workers.values(), os.getpid()])}
    finally:
        runner.remove("coder")
        runner.close()
    assert {title: (found[title].engine, found[title].tp_rank) for title in TITLES} == {
        "VLLM::EngineCore": ("coder", 0),
        "VLLM::Worker_TP0": ("coder", 0),
        "VLLM::Worker_TP1": ("coder", 1),
    }
    (ours,) = (each for each in found.values() if each.pid == os.getpid())
    assert ours.engine is None
