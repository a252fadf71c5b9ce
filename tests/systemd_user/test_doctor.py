"""What doctor says of a plain user's systemd."""

import os
from pathlib import Path

import pytest

from gpudeck.services.doctor import machine
from gpudeck.services.doctor.check import Health
from tests.rigs.small_engines import inside_systemd

pytestmark = [*inside_systemd, pytest.mark.skipif(os.getuid() == 0, reason="run it as a plain user")]


def test_the_users_systemd_runs_engines() -> None:
    check = machine.runner(demo=False)
    assert (check.health, check.says) == (Health.FINE, "systemd (user); 0 engines.")


def test_a_user_who_lingers_and_one_who_does_not(tmp_path: Path) -> None:
    lingers, leaves = machine.linger(), machine.linger(tmp_path)
    assert lingers is not None
    assert lingers.health is Health.FINE
    assert leaves is not None
    assert "loginctl enable-linger" in leaves.says
