"""Rights and the like, as they are for this user and for another."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gpudeck.services.box.types import Box
from gpudeck.services.doctor import machine
from gpudeck.services.doctor.check import Health
from tests.services.box.boxes import card, pair


def test_a_driver_with_its_cards() -> None:
    check = machine.driver(pair())
    assert (check.health, check.says) == (Health.FINE, "2 cards, driver 580.95.05, CUDA 13.0.")


def test_cards_that_could_not_be_opened_are_told_with_the_driver() -> None:
    check = machine.driver(Box((card(0),), driver="580", cuda="13.0", faults=("GPU 1 is off the bus.",)))
    assert check.health is Health.LESS
    assert check.says == "1 card, driver 580, CUDA 13.0; GPU 1 is off the bus."


def test_no_device_files_say_nothing_of_rights(tmp_path: Path) -> None:
    (tmp_path / "nvidia-caps").mkdir()
    (tmp_path / "null").touch()
    assert machine.rights(tmp_path) is None


def test_cards_that_may_be_opened(tmp_path: Path) -> None:
    for name in ("nvidiactl", "nvidia0"):
        (tmp_path / name).touch()
    check = machine.rights(tmp_path)
    assert check is not None
    assert check.health is Health.FINE


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_cards_that_a_user_may_not_open(tmp_path: Path) -> None:
    for name in ("nvidiactl", "nvidia0", "nvidia1"):
        (tmp_path / name).touch(mode=0o660)
    (tmp_path / "nvidiactl").chmod(0o666)
    for folder in (tmp_path, *tmp_path.parents):
        if Path(tempfile.gettempdir()) in folder.parents:
            folder.chmod(0o755)
    code = (
        "import os, sys; from pathlib import Path; from gpudeck.services.doctor import machine;"
        "os.setgid(65534); os.setuid(65534); print(machine.rights(Path(sys.argv[1])).says)"
    )
    said = subprocess.check_output([sys.executable, "-c", code, tmp_path], text=True)
    group = tmp_path.group()
    assert said == (
        f"You may not open {tmp_path}/nvidia0, {tmp_path}/nvidia1: have yourself added to the group {group}, "
        "and log in again.\n"
    )
