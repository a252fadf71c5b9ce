"""Install, start, stop, remove, as root in a real systemd; what the runner says is held against systemctl."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gpudeck.services.engine.systemd.errors import JobFailedError, NoUnitError, UnitTakenError
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError
from tests.rigs.small_engines import Heard, engine, inside_systemd, processes, until

pytestmark = inside_systemd
UNITS = Path("/etc/systemd/system")
SLEEPS = "echo up; exec sleep 1000"


def systemctl(*words: str) -> str:
    return subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False).stdout.strip()


def drop_in(unit: str, text: str) -> None:
    folder = UNITS / f"{unit}.d"
    folder.mkdir(exist_ok=True)
    (folder / "test.conf").write_text(text)
    daemon_reload()


def daemon_reload() -> None:
    subprocess.run(["systemctl", "daemon-reload"], check=True)


def test_the_whole_road(runner: SystemdRunner, tmp_path: Path) -> None:
    spec = engine(tmp_path, "road", SLEEPS)
    heard = Heard()
    runner.watch(heard)
    assert runner.state("road") is None
    preview = runner.preview(spec)
    assert (preview.path, preview.existing, preview.managed) == (str(UNITS / "vllm-road.service"), None, True)

    runner.install(spec)
    assert (UNITS / "vllm-road.service").read_text() == preview.text
    assert (UNITS / "vllm-road.service").stat().st_mode & 0o7777 == 0o644
    assert runner.preview(spec).unchanged
    installed = runner.state("road")
    assert installed is not None
    assert (installed.active, installed.managed, installed.spec) == ("inactive", True, spec)

    runner.start("road")
    running = until("no word of it running", lambda: [s for s in heard.of("road") if s.active == "active"])[-1]
    assert running.main_pid == int(systemctl("show", "-P", "MainPID", "vllm-road"))
    assert Path(f"/proc/{running.main_pid}/comm").read_text() == "sleep\n"
    assert runner.state("road") == running
    assert heard.threads == {"systemd-signals"}

    runner.restart("road")
    until("no word of another pid", lambda: (heard.last("road") or running).main_pid not in (None, running.main_pid))
    runner.stop("road")
    assert systemctl("is-active", "vllm-road") == "inactive"
    until("no word of the end", lambda: (heard.last("road") or running).active == "inactive")
    assert heard.active("road")[-3:] == ["active", "deactivating", "inactive"]

    runner.remove("road")
    assert not (UNITS / "vllm-road.service").exists()
    assert runner.state("road") is None
    assert runner.engines() == ()


def test_enabled_and_removed_leaves_no_links(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "boot", SLEEPS), enable=True)
    assert systemctl("is-enabled", "vllm-boot") == "enabled"
    runner.remove("boot")
    assert not [path for path in UNITS.rglob("*") if "vllm-boot" in path.name]


def test_a_changed_spec_replaces_the_unit(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "change", SLEEPS))
    other = engine(tmp_path, "change", SLEEPS, model="/models/other")
    preview = runner.preview(other)
    assert preview.managed
    assert not preview.unchanged
    assert "/models/none" in (preview.existing or "")
    runner.install(other)
    assert "/models/other" in systemctl("show", "-P", "ExecStart", "vllm-change")


def test_a_foreign_unit_is_shown_and_never_touched(runner: SystemdRunner, tmp_path: Path) -> None:
    path = UNITS / "vllm-mine.service"
    path.write_text("[Service]\nExecStart=/bin/sleep 1000\n")
    daemon_reload()
    try:
        preview = runner.preview(engine(tmp_path, "mine", SLEEPS))
        assert not preview.managed
        with pytest.raises(UnitTakenError, match=r"vllm-mine\.service is there already and was not written by gpudeck"):
            runner.install(engine(tmp_path, "mine", SLEEPS))
        with pytest.raises(UnitTakenError, match="was not written by gpudeck: remove it by hand"):
            runner.remove("mine")
        assert path.read_text() == "[Service]\nExecStart=/bin/sleep 1000\n"
        (found,) = [state for state in runner.engines() if state.name == "mine"]
        assert (found.managed, found.spec) == (False, None)
        runner.start("mine")
        assert systemctl("is-active", "vllm-mine") == "active"
        runner.stop("mine")
    finally:
        path.unlink()
        daemon_reload()


def test_a_unit_of_a_package_is_foreign_too(runner: SystemdRunner, tmp_path: Path) -> None:
    path = Path("/usr/lib/systemd/system/vllm-packaged.service")
    path.write_text("[Service]\nExecStart=/bin/sleep 1000\n")
    daemon_reload()
    try:
        with pytest.raises(UnitTakenError, match=r"lib/systemd/system/vllm-packaged\.service\)"):
            runner.install(engine(tmp_path, "packaged", SLEEPS))
        assert not (UNITS / path.name).exists()
    finally:
        path.unlink()
        daemon_reload()


def test_a_masked_unit_says_so(runner: SystemdRunner, tmp_path: Path) -> None:
    (UNITS / "vllm-masked.service").symlink_to("/dev/null")
    daemon_reload()
    try:
        with pytest.raises(OperatorError, match=r"vllm-masked\.service is masked: systemctl unmask"):
            runner.start("masked")
        with pytest.raises(OperatorError, match=r"vllm-masked\.service is masked: systemctl unmask"):
            runner.install(engine(tmp_path, "masked", SLEEPS))
        assert (UNITS / "vllm-masked.service").is_symlink()
        state = runner.state("masked")
        assert state is not None
        assert (state.active, state.sub) == ("inactive", "masked")
    finally:
        (UNITS / "vllm-masked.service").unlink()
        daemon_reload()


def test_what_is_not_there(runner: SystemdRunner) -> None:
    for act in (runner.start, runner.stop, runner.restart, runner.remove):
        with pytest.raises(NoUnitError, match=r"There is no vllm-nothing\.service"):
            act("nothing")


def test_a_broken_unit_says_so(runner: SystemdRunner) -> None:
    path = UNITS / "vllm-broken.service"
    path.write_text("[Service]\nType=nonsense\n")
    daemon_reload()
    try:
        with pytest.raises(JobFailedError, match=r"systemd can not load vllm-broken\.service"):
            runner.start("broken")
    finally:
        path.unlink()
        daemon_reload()


def test_a_program_that_is_not_there_is_refused_before_anything_is_written(
    runner: SystemdRunner, tmp_path: Path
) -> None:
    spec = engine(tmp_path, "noprogram", SLEEPS, program=(str(tmp_path / "nothing"),))
    with pytest.raises(OperatorError, match="is not found or can not be executed"):
        runner.install(spec)
    assert not (UNITS / "vllm-noprogram.service").exists()


def test_a_program_that_went_away_fails_the_start(runner: SystemdRunner, tmp_path: Path) -> None:
    spec = engine(tmp_path, "gone", SLEEPS)
    runner.install(spec)
    Path(spec.program[0]).unlink()
    with pytest.raises(
        JobFailedError, match=r"vllm-gone\.service did not start, since its program can not be executed"
    ):
        runner.start("gone")


def test_a_stop_that_meets_deaf_processes_ends_with_none(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "deaf", "trap '' TERM\n(trap '' TERM; sleep 1000) &\nwhile :; do sleep 1; done"))
    drop_in("vllm-deaf.service", "[Service]\nTimeoutStopSec=1\n")
    runner.start("deaf")
    group = Path("/sys/fs/cgroup" + systemctl("show", "-P", "ControlGroup", "vllm-deaf"))
    until("the processes do not run", lambda: len((group / "cgroup.procs").read_text().split()) >= 3)
    runner.stop("deaf")
    assert not group.exists()
    stopped = runner.state("deaf")
    assert stopped is not None
    assert (stopped.active, stopped.result, stopped.exit_status) == ("failed", "timeout", 137)


@pytest.mark.parametrize("script", ["exit 0", "exit 3", "kill -9 $$"])
def test_a_crash_loop_is_never_called_failed_until_it_is(runner: SystemdRunner, tmp_path: Path, script: str) -> None:
    """Restart=always holds for exit code 0 too, and each crash passes through "failed" on its way to the restart."""
    runner.install(engine(tmp_path, "loop", f"sleep 0.1; {script}"))
    drop_in("vllm-loop.service", "[Service]\nRestartSec=20ms\nRestartMaxDelaySec=20ms\n")
    heard = Heard()
    runner.watch(heard)
    runner.start("loop")
    until("the start limit is not reached", lambda: (heard.last("loop") or heard.states[0]).active == "failed")
    last = heard.last("loop")
    assert last is not None
    assert (last.sub, last.restarts) == ("failed", 5)
    assert heard.active("loop").count("failed") == 1
    assert any(state.sub.startswith("auto-restart") for state in heard.of("loop"))
    # By hand it may be started again, and counts anew.
    runner.start("loop")
    until("it is not tried again", lambda: len([s for s in heard.of("loop") if s.active == "failed"]) >= 2)


def test_killed_while_it_serves_is_restarted_and_told(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "killed", SLEEPS))
    drop_in("vllm-killed.service", "[Service]\nRestartSec=20ms\nRestartMaxDelaySec=20ms\n")
    heard = Heard()
    runner.watch(heard)
    runner.start("killed")
    first = until("it does not run", lambda: [s for s in heard.of("killed") if s.main_pid and s.active == "active"])[-1]
    assert first.main_pid is not None
    os.kill(first.main_pid, 9)
    again = until("it is not restarted", lambda: [s for s in heard.of("killed") if s.restarts == 1 and s.main_pid])[-1]
    assert again.main_pid != first.main_pid


def test_leaving_or_killing_the_panel_stops_no_engine(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "stays", SLEEPS))
    program = textwrap.dedent("""
        import sys
        from gpudeck.services.engine.systemd.manager import SystemdRunner
        from gpudeck.services.engine.types import Scope
        runner = SystemdRunner(Scope.SYSTEM)
        runner.watch(print)
        runner.start("stays")
        runner.follow("stays", print).start()
        print("up", flush=True)
        sys.stdin.read()
        runner.close()
    """)
    for killed in (False, True):
        panel = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert panel.stdin is not None
        assert panel.stdout is not None
        until("the panel is not up", lambda panel=panel: panel.stdout.readline() == "up\n")  # type: ignore[misc]
        pid = systemctl("show", "-P", "MainPID", "vllm-stays")
        if killed:
            panel.kill()
        panel.communicate()
        assert systemctl("is-active", "vllm-stays") == "active"
        assert systemctl("show", "-P", "MainPID", "vllm-stays") == pid
    until("its journalctl outlives it", lambda: not processes("journalctl"))


def test_units_of_others_and_templates_are_not_engines(runner: SystemdRunner, tmp_path: Path) -> None:
    for name in ("vllm@.service", "vllm-@.service", "other.service", "gpudeck-demo-x.service"):
        (UNITS / name).write_text("[Service]\nExecStart=/bin/true\n")
    daemon_reload()
    try:
        assert runner.engines() == ()
        demo = SystemdRunner(Scope.SYSTEM, "gpudeck-demo-")
        assert [state.name for state in demo.engines()] == ["x"]
        demo.close()
    finally:
        for name in ("vllm@.service", "vllm-@.service", "other.service", "gpudeck-demo-x.service"):
            (UNITS / name).unlink()
        daemon_reload()


def test_a_unit_installed_by_someone_else_is_told(runner: SystemdRunner, tmp_path: Path) -> None:
    heard = Heard()
    runner.watch(heard)
    other = SystemdRunner(Scope.SYSTEM)
    other.install(engine(tmp_path, "theirs", SLEEPS))
    other.close()
    until("no word of the new unit", lambda: heard.last("theirs"))


@pytest.mark.parametrize("hindrance", ["read-only", "full"])
def test_a_unit_that_can_not_be_written_leaves_nothing(runner: SystemdRunner, tmp_path: Path, hindrance: str) -> None:
    before = sorted(UNITS.iterdir())
    filler = UNITS / "filler"
    if hindrance == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", UNITS], check=True)
    else:
        subprocess.run(["mount", "-o", "remount,size=1m", UNITS], check=True)
        with pytest.raises(OSError, match="No space left"):
            filler.write_bytes(b"x" * (2 << 20))
    try:
        with pytest.raises(OperatorError, match=r"vllm-stuck\.service can not be written \("):
            runner.install(engine(tmp_path, "stuck", SLEEPS))
        assert [path for path in sorted(UNITS.iterdir()) if path != filler] == before
    finally:
        subprocess.run(["mount", "-o", "remount,rw,size=64m", UNITS], check=True)
        filler.unlink(missing_ok=True)
