"""The rig itself: what it passes on, what it keeps from the machine, and that it leaves nothing behind."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

RIG = Path(__file__).with_name("with_systemd")


def rig(*arguments: str, **more: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([RIG, *arguments], capture_output=True, text=True, timeout=60, **more)  # type: ignore[call-overload, no-any-return]


def _why_not() -> str:
    done = rig("--check")
    return "" if done.returncode == 0 else done.stderr.strip()


WHY_NOT = _why_not()
pytestmark = pytest.mark.systemd
booting = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_wrong_usage_is_one_sentence_and_125() -> None:
    done = rig()
    assert done.returncode == 125
    assert done.stderr == "with_systemd: no command given; see --help\n"


@pytest.mark.skipif(bool(os.geteuid()), reason="only root can become someone else")
def test_check_says_why_not() -> None:
    # A copy where everyone may read: the checkout often lies where only root may.
    with tempfile.TemporaryDirectory() as folder:
        open_to_all = Path(folder)
        open_to_all.chmod(0o755)
        shutil.copy(RIG, open_to_all)
        shutil.copytree(RIG.parent / "booted", open_to_all / "booted")
        done = subprocess.run(
            [open_to_all / RIG.name, "--check"], capture_output=True, text=True, timeout=60, user=65534, cwd="/"
        )
    assert done.returncode == 125
    assert done.stderr == "with_systemd: no: only root can make the namespaces: run it with sudo\n"


@booting
def test_check_says_yes() -> None:
    assert rig("--check").stdout.startswith("yes: systemd 2")


@booting
@pytest.mark.parametrize(
    ("command", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
)
def test_exit_code_is_the_commands(command: str, code: int) -> None:
    assert rig("--", "sh", "-c", command).returncode == code


@booting
def test_command_not_found_is_127() -> None:
    assert rig("no-such-program").returncode == 127


@booting
def test_words_and_environment_and_directory_pass(tmp_path: Path) -> None:
    done = rig(
        "sh",
        "-c",
        'pwd; echo "$MARK" "$WITH_SYSTEMD"; echo "$@"',
        "sh",
        "$HOME",
        "%n ü",
        cwd=tmp_path,
        env={**os.environ, "MARK": "a $b"},
    )
    assert done.stdout == f"{tmp_path}\na $b 1\n$HOME %n ü\n"


@booting
def test_the_machine_is_kept_and_the_system_thrown_away(tmp_path: Path) -> None:
    done = rig(
        "sh",
        "-ec",
        "touch kept /etc/gone /var/gone /usr/gone /run/gone; useradd gone; systemctl is-system-running; id gone",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("running\n")
    assert (tmp_path / "kept").exists()
    assert not [path for path in ("/etc/gone", "/var/gone", "/usr/gone", "/run/gone") if Path(path).exists()]
    assert "gone:" not in Path("/etc/passwd").read_text()


@booting
def test_working_directory_under_var_is_the_machines_own() -> None:
    folder = Path(f"/var/tmp/with-systemd-test-{os.getpid()}")
    folder.mkdir()
    try:
        assert rig("touch", "kept", cwd=folder).returncode == 0
        assert (folder / "kept").exists()
    finally:
        (folder / "kept").unlink(missing_ok=True)
        folder.rmdir()


@booting
def test_plain_user_has_a_manager_and_a_bus() -> None:
    done = rig(
        "--user",
        "rigged",
        "--",
        "sh",
        "-c",
        "whoami; systemctl --user is-system-running; busctl --user list >/dev/null && echo bus",
        cwd="/",
    )
    assert done.stdout == "rigged\nrunning\nbus\n", done.stderr


@booting
def test_setup_runs_as_root_inside_and_its_failure_is_told() -> None:
    done = rig("--user", "rigged", "--setup", "id -u >/run/setup", "--", "cat", "/run/setup", cwd="/")
    assert done.stdout == "0\n", done.stderr
    failed = rig("--setup", "exit 3", "--", "true")
    assert failed.returncode == 125
    assert "the set-up failed with exit code 3" in failed.stderr


@booting
def test_signals_go_to_the_command() -> None:
    script = "trap 'echo told; exit 5' TERM; echo up; while :; do sleep 0.05; done"
    with subprocess.Popen([RIG, "sh", "-c", script], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "up\n"
        running.send_signal(signal.SIGTERM)
        assert running.stdout.read() == "told\n"
    assert running.returncode == 5


@booting
def test_nothing_is_left_after_kill() -> None:
    mark = f"3{os.getpid()}"
    with subprocess.Popen(
        [RIG, "sh", "-c", f"echo up; exec sleep {mark}"], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "up\n"
        group = _group_of(mark)
        running.kill()
        running.wait()
        until(lambda: not _sleepers(mark), "the command outlived the rig")
        until(lambda: not group.exists(), f"{group} is left")


@booting
@pytest.mark.skipif("WITH_SYSTEMD" in os.environ, reason="Linux stacks overlays two deep and no deeper")
def test_it_boots_inside_itself() -> None:
    assert rig(str(RIG), "--check").returncode == 0


def _sleepers(mark: str) -> list[Path]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == f"sleep\0{mark}\0".encode():
                found.append(path.parent)
        except OSError:
            pass
    return found


def _group_of(mark: str) -> Path:
    until(lambda: bool(_sleepers(mark)), "the command does not run")
    (sleeper,) = _sleepers(mark)
    line = next(line for line in (sleeper / "cgroup").read_text().splitlines() if line.startswith("0::"))
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    root = next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)
    if root is None:
        pytest.skip("no cgroup2 is mounted here to look at")
    return Path(root, line.removeprefix("0::/").split("/")[0])
