"""What a plain user may do with the system's units: nothing without a polkit rule, and that is said in a sentence."""

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpudeck.services.engine.systemd.polkit import rule_text
from tests.rigs.at_the_panel import GPUDECK
from tests.rigs.small_engines import inside_systemd, until

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
    "restart": lambda: runner.restart("rights"),
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
    with ruled():
        assert as_user("op", "start", "read", "restart", "stop") == {
            "start": None, "read": "active", "restart": None, "stop": None
        }  # fmt: skip
        assert str(as_user("eve", "start")["start"]).startswith("NoRightsError: ")
        assert all(allowed("op", verb, UNIT.name) for verb in ("start", "reset-failed", "stop"))


@pytest.fixture
def bystanders() -> Iterator[None]:
    """Units that are no engines, some by a letter alone."""
    service = "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n"
    names = ("other.service", "vllm.service", "xvllm-rights.service", "gpudeck-restart-vllm-rights.service")
    units = dict.fromkeys(names, service) | {"vllm-rights.timer": "[Timer]\nOnActiveSec=1h\n"}
    for name, text in units.items():
        (UNIT.parent / name).write_text(text)
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    yield
    for name in units:
        (UNIT.parent / name).unlink()
    subprocess.run(["systemctl", "daemon-reload"], check=True)


@pytest.mark.parametrize(
    "words",
    [
        ("start", "other.service"),
        ("start", "vllm.service"),
        ("start", "xvllm-rights.service"),
        ("start", "vllm-rights.timer"),
        ("start", "gpudeck-restart-vllm-rights.service"),
        ("kill", "vllm-rights.service"),
        ("enable", "vllm-rights.service"),
        ("mask", "vllm-rights.service"),
        ("set-property", "--runtime", "vllm-rights.service", "CPUWeight=1"),
        ("daemon-reload",),
    ],
)
@pytest.mark.usefixtures("bystanders")
def test_the_rule_lets_them_do_nothing_else(words: tuple[str, ...]) -> None:
    with ruled():
        assert allowed("op", "start", UNIT.name)
        assert not allowed("op", *words)
        assert allowed("op", "stop", UNIT.name)


def test_a_users_own_engines_and_the_systems_stand_side_by_side(tmp_path: Path) -> None:
    home, uid = Path("/run/home-op"), pwd.getpwnam("op").pw_uid
    home.mkdir()
    os.chown(home, uid, uid)
    subprocess.run(["loginctl", "enable-linger", "op"], check=True)
    bus = Path(f"/run/user/{uid}/bus")
    until("op has no bus", bus.exists)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(bus.parent),
    }

    def gpudeck(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*GPUDECK, *words], user="op", group="op", extra_groups=_groups("op"), env=environment,
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    units = bus.parent / "systemd/user"
    units.mkdir(parents=True, exist_ok=True)
    for name in ("own", "both"):
        (units / f"vllm-{name}.service").write_text("[Service]\nExecStart=/bin/sleep 1000\n")
    (UNIT.parent / "vllm-both.service").write_text("[Service]\nExecStart=/bin/sleep 1000\n")
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    try:
        found = gpudeck("engines", "--json")
        assert found.returncode == 0, found.stderr
        engines = {each["name"]: each["scope"] for each in json.loads(found.stdout)["engines"]}
        assert engines == {"own": "user", "both": "user", "both@system": "system", "rights": "system"}
        refused = gpudeck("start", "rights", "--no-wait")
        assert refused.returncode == 1
        assert "have root install the rule that `gpudeck polkit` prints" in refused.stderr
        with ruled():
            for name in ("own", "both", "both@system", "rights"):
                assert gpudeck("start", name, "--no-wait").returncode == 0, name
            assert active("vllm-rights.service", "vllm-both.service") == ["active", "active"]
            assert gpudeck("stop", "both@system").returncode == 0
            assert active("vllm-rights.service", "vllm-both.service") == ["active", "inactive"]
            assert gpudeck("status", "both").returncode == 0  # the user's own goes on
            assert gpudeck("status", "both", "--scope", "system").returncode == 3
            assert "rights" not in gpudeck("engines", "--scope", "user").stdout
            assert gpudeck("stop", "rights").returncode == 0
    finally:
        subprocess.run(["systemctl", "stop", "vllm-both.service"], check=True)
        (UNIT.parent / "vllm-both.service").unlink()
        subprocess.run(["loginctl", "disable-linger", "op"], check=True)


def active(*units: str) -> list[str]:
    return subprocess.run(
        ["systemctl", "is-active", *units], capture_output=True, text=True, check=False
    ).stdout.split()


def allowed(user: str, *words: str) -> bool:
    """Whether systemctl does this for the user."""
    done = subprocess.run(
        ["systemctl", "--no-ask-password", *words],
        user=user, group=user, extra_groups=_groups(user), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 or "authentication required" in done.stderr or "Access denied" in done.stderr, done
    return done.returncode == 0


@contextmanager
def ruled() -> Iterator[None]:
    """The rule as `gpudeck polkit` prints it, for the group llmops."""
    RULE.write_text(rule_text("llmops"))
    RULE.chmod(0o644)
    subprocess.run(["systemctl", "try-restart", "polkit.service"], check=True)
    try:
        yield
    finally:
        RULE.unlink()
        subprocess.run(["systemctl", "try-restart", "polkit.service"], check=True)


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
