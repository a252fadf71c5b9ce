"""Lingering asked of the real logind: granted to oneself, and refused by a rule, with the way out."""

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.small_engines import inside_systemd, until

pytestmark = inside_systemd
NOTE = Path("/var/lib/systemd/linger/lingerer")
RULE = Path("/etc/polkit-1/rules.d/10-linger.rules")
DENIES = """\
polkit.addRule(function (action, subject) {
    if (action.id == "org.freedesktop.login1.set-self-linger" && subject.user == "lingerer") {
        return polkit.Result.NO;
    }
});
"""
PROGRAM = """
from gpudeck.services.engine.systemd.lingering import let_linger, lingers
from gpudeck.services.errors import OperatorError
print(lingers())
try:
    let_linger()
except OperatorError as error:
    print(error)
print(lingers())
"""


@pytest.fixture
def user() -> Iterator[str]:
    subprocess.run(["tests/rigs/let_in"], check=True)
    subprocess.run(["useradd", "--create-home", "lingerer"], check=True)
    yield "lingerer"
    subprocess.run(["loginctl", "disable-linger", "lingerer"], check=False)
    uid = pwd.getpwnam("lingerer").pw_uid
    until("its systemd goes on", lambda: not Path(f"/run/user/{uid}").exists())
    subprocess.run(["userdel", "--remove", "lingerer"], check=True, capture_output=True)


def as_user(name: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], user=name, group=name, extra_groups=[], cwd=Path.cwd(),
        env={"PATH": os.environ["PATH"], "HOME": f"/home/{name}"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_refused_then_granted(user: str) -> None:
    RULE.write_text(DENIES)
    RULE.chmod(0o644)
    subprocess.run(["systemctl", "try-restart", "polkit.service"], check=True)
    try:
        assert as_user(user) == [
            "False",
            "logind does not let you outlive your logins by yourself: "
            "have root call `loginctl enable-linger lingerer`.",
            "False",
        ]
    finally:
        RULE.unlink()
        subprocess.run(["systemctl", "try-restart", "polkit.service"], check=True)
    assert as_user(user) == ["False", "True"]
    assert NOTE.exists()
