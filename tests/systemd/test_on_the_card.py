"""Processes on a card tied to the units that run them, as a booted systemd has them."""

import subprocess
import sys
import time
from pathlib import Path

import psutil

from gpudeck.services.engine.systemd.manager import SystemdRunner
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.rigs.on_the_card import TITLED, holders, pids_told
from tests.rigs.small_engines import engine, inside_systemd, until

pytestmark = inside_systemd
UNITS = Path("/etc/systemd/system")
TITLES = ("VLLM::Worker_PP0_TP0", "VLLM::Worker_PP0_TP1", "VLLM::Worker_PP1_TP0")


def test_workers_of_our_unit_are_tied_to_engine_and_rank(
    runner: SystemdRunner, fake_nvml: FakeNvml, tmp_path: Path
) -> None:
    begun = time.time()
    runner.install(engine(tmp_path, "coder", f"exec {sys.executable} {TITLED} {' '.join(TITLES)}"))
    runner.start("coder")
    workers = until("no workers", lambda: _all_told([line.text for line in runner.history("coder")]))
    found = holders(fake_nvml, [*workers.values()])
    assert [(each.name, each.engine, each.pp_rank, each.tp_rank) for each in found] == [
        ("VLLM::Worker_PP0_TP0", "coder", 0, 0),
        ("VLLM::Worker_PP0_TP1", "coder", 0, 1),
        ("VLLM::Worker_PP1_TP0", "coder", 1, 0),
    ]
    assert {each.user for each in found} == {psutil.Process().username()}
    for each in found:
        assert each.started_at is not None
        assert begun - 2 < each.started_at < time.time() + 2


def test_workers_of_a_hand_written_unit_are_tied_to_its_name(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    log = tmp_path / "log"
    # As people write them: no name that gpudeck would give, and the main process known by its command line alone.
    program = tmp_path / "vllm"
    program.symlink_to(TITLED)
    (UNITS / "qwen-prod.service").write_text(
        "[Service]\nUser=root\n"
        f"ExecStart={sys.executable} {program} serve {' '.join(TITLES)}\n"
        f"StandardOutput=append:{log}\n"
    )
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    subprocess.run(["systemctl", "start", "qwen-prod"], check=True)
    try:
        workers = until("no workers", lambda: _all_told(log.read_text().splitlines() if log.exists() else []))
        main = int(subprocess.check_output(["systemctl", "show", "-P", "MainPID", "qwen-prod"], text=True))
        found = holders(fake_nvml, [main, *workers.values()])
    finally:
        subprocess.run(["systemctl", "stop", "qwen-prod"], check=True)
        (UNITS / "qwen-prod.service").unlink()
        subprocess.run(["systemctl", "daemon-reload"], check=True)
    assert {each.engine for each in found} == {"qwen-prod"}
    assert {each.tp_rank for each in found if each.pid != main} == {0, 1}


def test_a_stranger_in_a_service_is_nobodys_engine(fake_nvml: FakeNvml) -> None:
    """Inside the booted systemd the process numbers are not the machine's: who has no card open is not believed."""
    subprocess.run(["systemd-run", "--unit=training", "sleep", "1000"], check=True, capture_output=True)
    try:
        main = int(subprocess.check_output(["systemctl", "show", "-P", "MainPID", "training"], text=True))
        (found,) = holders(fake_nvml, [main])
    finally:
        subprocess.run(["systemctl", "stop", "training"], check=True)
    assert (found.engine, found.user, found.name) == (None, None, "a process outside this container")


def _all_told(lines: list[str]) -> dict[str, int]:
    told = pids_told("\n".join(lines))
    return told if len(told) == len(TITLES) else {}
