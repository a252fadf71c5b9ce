"""A plain user's engine, restarted by the clock of their own systemd."""

import os
from pathlib import Path

import pytest

from gpudeck.services.engine.choose import open_runner
from tests.rigs.small_engines import engine, inside_systemd, until

pytestmark = [*inside_systemd, pytest.mark.skipif(os.getuid() == 0, reason="run it as a plain user")]


def test_the_clock_of_ones_own(tmp_path: Path) -> None:
    runner = open_runner()
    runner.install(engine(tmp_path, "clocked", "exec sleep 1000"))
    try:
        runner.start("clocked")
        first = runner.state("clocked")
        assert first is not None
        assert runner.set_schedule("clocked", "*:*:0/2") is not None

        def restarted() -> bool:
            now = runner.state("clocked")
            return now is not None and now.main_pid not in (None, first.main_pid)

        until("it is not restarted", restarted, 30)
    finally:
        runner.remove("clocked")
    assert not list((Path.home() / ".config/systemd/user").rglob("gpudeck-restart-*"))
    runner.close()
