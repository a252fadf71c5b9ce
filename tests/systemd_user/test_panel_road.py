"""The panel in a real terminal, as a plain user, under the user's own systemd."""

import os
from pathlib import Path

import pytest

from tests.rigs.demo_units import UNIT, Manager, home_of, walk
from tests.rigs.small_engines import inside_systemd

pytestmark = [
    *inside_systemd,
    pytest.mark.terminal,
    pytest.mark.timeout(180),
    pytest.mark.skipif(os.getuid() == 0, reason="run it as a plain user"),
]


def test_the_demos_road(tmp_path: Path) -> None:
    unit_file = Path.home() / ".config/systemd/user" / UNIT
    walk(Manager(("--user",)), home_of(tmp_path), unit_file, "systemd (user)")
