"""What a plain user may do with the system's units: nothing without a polkit rule, and that is said in a sentence."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.small_engines import inside_systemd

pytestmark = inside_systemd
UNIT = Path("/etc/systemd/system/vllm-rights.service")
RULE = Path("/etc/polkit-1/rules.d/50-gpudeck-test.rules")

PROGRAM = """
import json, sys
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineSpec, Placement
runner = SystemdRunner(Scope.SYSTEM)
spec = EngineSpec("rights", "/m", Placement(((0,),)), program=("/bin/true",))
own = EngineSpec("own", "/m", Placement(((0,),)), program=("/bin/true",))
acts = {
    "read": lambda: runner.state("rights").active,
    "list": lambda: [state.name for state in runner.engines()],
    "start": lambda: runner.start("rights"),
    "stop": lambda: runner.stop("rights"),
    "install": lambda: runner.install(own),
    "remove": lambda: runner.remove("rights"),
    "history": lambda: len(runner.history("rights")) >= 0,
    "follow": lambda: runner.follow("rights", print).start(),
}
told = {}
for act in sys.argv[1:]:
    try:
        told[act] = acts[act]()
    except OperatorError as error:
        told[act] = f"{type(error).__name__}: {error}"
runner.close()
print(json.dumps(told))
"""


@pytest.fixture(scope="module", autouse=True)
def users() -> Iterator[None]:
    subprocess.run(["tests/rigs/let_in"], check=True)
    subprocess.run(["groupadd", "llmops"], check=True)
    subprocess.run(["useradd", "-G", "llmops", "-d", "/", "op"], check=True)
    subprocess.run(["useradd", "-d", "/", "eve"], check=True)
    UNIT.write_text("[Service]\nExecStart=/bin/sleep 1000\n")
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    yield
    subprocess.run(["systemctl", "stop", UNIT.name], check=True)
    UNIT.unlink()
    subprocess.run(["systemctl", "daemon-reload"], check=True)


def as_user(name: str, *acts: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *acts],
        user=name,
        group=name,
        extra_groups=_groups(name),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, object] = json.loads(done.stdout)
    return told


def _groups(name: str) -> list[str]:
    return subprocess.run(["id", "-Gn", name], capture_output=True, text=True, check=True).stdout.split()


def test_a_plain_user_reads_everything_and_changes_nothing() -> None:
    told = as_user("eve", "read", "list", "start", "stop", "install", "remove")
    assert (told["read"], told["list"]) == ("inactive", ["rights"])
    for act in ("start", "stop"):
        assert told[act] == (
            f"NoRightsError: You may not {act} vllm-rights.service: run gpudeck as root, "
            "or have root install the rule that `gpudeck polkit` prints."
        )
    assert told["install"] == (
        "OperatorError: /etc/systemd/system/vllm-own.service can not be written (Permission denied): "
        "run gpudeck as root."
    )
    assert told["remove"] == "UnitTakenError: vllm-rights.service was not written by gpudeck: remove it by hand."


def test_the_journal_without_the_group_is_one_sentence() -> None:
    for sentence in as_user("eve", "history", "follow").values():
        assert str(sentence).startswith(
            "OperatorError: The journal of vllm-rights.service can not be read: be root, or"
        )
    subprocess.run(["usermod", "-aG", "systemd-journal", "eve"], check=True)
    assert as_user("eve", "history") == {"history": True}


def test_a_rule_lets_one_group_start_and_stop() -> None:
    RULE.write_text(
        """polkit.addRule(function (action, subject) {
    if (action.id == "org.freedesktop.systemd1.manage-units" && subject.isInGroup("llmops") &&
        /^vllm-[a-z0-9_.-]+\\.service$/.test(action.lookup("unit")))
        return polkit.Result.YES;
});
"""
    )
    RULE.chmod(0o644)
    try:
        subprocess.run(["systemctl", "try-restart", "polkit.service"], check=True)
        assert as_user("op", "start", "read", "stop") == {"start": None, "read": "active", "stop": None}
        assert str(as_user("eve", "start")["start"]).startswith("NoRightsError: ")
    finally:
        RULE.unlink()


@pytest.mark.parametrize("polkit", ["denies", "is masked"])
def test_other_refusals(polkit: str) -> None:
    if polkit == "denies":
        RULE.write_text("polkit.addRule(function (action, subject) { return polkit.Result.NO; });\n")
        RULE.chmod(0o644)
        subprocess.run(["systemctl", "try-restart", "polkit.service"], check=True)
    else:
        subprocess.run(["systemctl", "stop", "polkit.service"], check=True)
        subprocess.run(["systemctl", "mask", "--runtime", "polkit.service"], check=True, capture_output=True)
    try:
        assert str(as_user("eve", "start")["start"]).startswith("NoRightsError: You may not start vllm-rights.service")
    finally:
        RULE.unlink(missing_ok=True)
        subprocess.run(["systemctl", "unmask", "--runtime", "polkit.service"], check=True, capture_output=True)
