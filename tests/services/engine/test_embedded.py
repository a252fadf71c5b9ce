"""The embedded runner with real processes: small programs that behave as an engine does, or as it should not."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gpudeck.services.engine.embedded import EmbeddedRunner
from gpudeck.services.engine.enginedir import Command, EngineDirectory, write
from gpudeck.services.engine.processes import descendants, process, title
from gpudeck.services.engine.types import LogLine, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.types import EngineSpec, Placement

SLEEP = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"
SPAWNS = """\
import os, subprocess, sys, time
# One child whose environment is lost, as setproctitle writes over it, and one that leaves session and parent.
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(601)"], env={})
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(602)
    os._exit(0)
print("up", flush=True)
time.sleep(600)
"""
STUBBORN = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)\n"
SECOND_TERM = """\
import signal, sys, time
terms = []
signal.signal(15, lambda *_: terms.append(1) if not terms else sys.exit(0))
print("up", flush=True)
while True:
    time.sleep(600)
"""


def until(condition: Callable[[], bool], what: str = "condition") -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true"
        time.sleep(0.02)


class Box:
    """A runner in a folder of its own, and the programs that its engines run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "state" / "engines"
        self.runner = EmbeddedRunner(home=self.home)

    def spec(self, program: str, name: str = "tiny", **environment: str) -> EngineSpec:
        script = self.folder / f"{name}.py"
        script.write_text(program)
        return EngineSpec(
            name,
            "/models/tiny",
            Placement(((1,), (0,))),
            program=(sys.executable, str(script)),
            environment=tuple(environment.items()),
        )

    def started(self, program: str, name: str = "tiny") -> UnitState:
        self.runner.install(self.spec(program, name))
        self.runner.start(name)
        until(lambda: "up" in self.log(name), "the engine")
        return self.state(name)

    def state(self, name: str = "tiny") -> UnitState:
        state = self.runner.state(name)
        assert state is not None
        return state

    def files(self, name: str = "tiny") -> EngineDirectory:
        return EngineDirectory(self.home / f"vllm-{name}.service")

    def log(self, name: str = "tiny") -> str:
        return self.files(name).log.read_text() if self.files(name).log.exists() else ""

    def patience(self, seconds: float, second_term: float | None = None, name: str = "tiny") -> None:
        """Shorten the stop time-out of an installed engine."""
        command = Command.read(self.files(name).command)
        command = replace(command, stop_timeout_s=seconds, second_term_s=second_term)
        write(self.files(name).command, command.text())


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    box = Box(tmp_path)
    yield box
    for state in box.runner.engines():
        if state.alive:
            box.patience(0.0, name=state.name)
        box.runner.stop(state.name)
    box.runner.close()


def test_the_preview_is_what_is_written(box: Box) -> None:
    spec = box.spec(SLEEP)
    preview = box.runner.preview(spec)
    assert preview.existing is None
    assert '    "CUDA_VISIBLE_DEVICES": "1,0",' in preview.text.splitlines()
    assert '    "serve",' in preview.text.splitlines()
    box.runner.install(spec)
    assert Path(preview.path).read_text() == preview.text
    assert Path(preview.path).stat().st_mode & 0o077 == 0
    assert box.runner.preview(spec).unchanged
    assert box.state().active == "inactive"
    assert box.state().spec == spec


def test_start_and_stop(box: Box) -> None:
    state = box.started(SLEEP)
    assert (state.active, state.sub) == ("active", "running")
    assert state.main_pid is not None
    main = process(state.main_pid)
    assert main is not None
    assert os.getsid(main.pid) == main.pid
    environment = Path(f"/proc/{main.pid}/environ").read_bytes().split(b"\0")
    assert b"CUDA_VISIBLE_DEVICES=1,0" in environment
    (path,) = [entry.decode() for entry in environment if entry.startswith(b"PATH=")]
    assert str(Path(sys.executable).parent) in path.removeprefix("PATH=").split(":")  # where ninja lies beside vllm
    assert Path(f"/proc/{main.pid}/fd/0").readlink() == Path("/dev/null")
    assert {entry.name for entry in Path(f"/proc/{main.pid}/fd").iterdir()} == {"0", "1", "2"}
    box.runner.start("tiny")  # as with systemd: nothing to do
    assert box.state().main_pid == main.pid
    box.runner.stop("tiny")
    assert not main.alive
    stopped = box.state()
    assert (stopped.active, stopped.sub, stopped.result) == ("inactive", "dead", "success")
    assert stopped.exit_status == 128 + signal.SIGTERM


def test_every_descendant_is_ended(box: Box) -> None:
    state = box.started(SPAWNS)
    run = box.files().run()
    assert run is not None
    until(lambda: len(descendants(run.supervisor.pid)) == 3, "the strays")
    everyone = descendants(run.supervisor.pid)
    box.runner.stop("tiny")
    assert [each for each in everyone if each.alive] == []
    assert state.main_pid is not None


def test_what_the_main_process_leaves_behind_is_ended(box: Box) -> None:
    state = box.started(SPAWNS)
    run = box.files().run()
    assert run is not None
    until(lambda: len(descendants(run.supervisor.pid)) == 3)
    everyone = descendants(run.supervisor.pid)
    assert state.main_pid is not None
    os.kill(state.main_pid, signal.SIGKILL)
    until(lambda: box.state().active == "failed")
    assert [each for each in everyone if each.alive] == []
    assert (box.state().result, box.state().exit_status) == ("signal", 128 + signal.SIGKILL)


@pytest.mark.parametrize("status", [0, 1, 130])
def test_an_engine_that_ends_by_itself_has_failed(box: Box, status: int) -> None:
    box.runner.install(box.spec(f"raise SystemExit({status})"))
    box.runner.start("tiny")
    until(lambda: box.state().active == "failed")
    assert (box.state().result, box.state().exit_status) == ("exit-code", status)


def test_an_engine_that_ignores_sigterm_is_killed(box: Box) -> None:
    box.runner.install(box.spec(STUBBORN))
    box.patience(0.3)
    box.runner.start("tiny")
    until(lambda: "up" in box.log())
    run = box.files().run()
    assert run is not None
    box.runner.stop("tiny")
    assert not run.main.alive
    assert (box.state().active, box.state().result) == ("failed", "timeout")


def test_a_second_sigterm_is_sent(box: Box) -> None:
    box.runner.install(box.spec(SECOND_TERM))
    box.patience(30, second_term=0.2)
    box.runner.start("tiny")
    until(lambda: "up" in box.log())
    box.runner.stop("tiny")
    assert (box.state().active, box.state().exit_status) == ("inactive", 0)


def test_the_program_is_missing(box: Box) -> None:
    spec = EngineSpec("tiny", "m", Placement(((0,),)), program=("/no/such/vllm",))
    box.runner.install(spec)
    with pytest.raises(OperatorError, match=r"/no/such/vllm: No such file"):
        box.runner.start("tiny")
    assert box.state().active == "inactive"


def test_found_again_by_a_later_gpudeck(box: Box) -> None:
    box.started(SLEEP)
    box.runner.close()
    later = EmbeddedRunner(home=box.home)
    (found,) = later.engines()
    assert found == box.state()
    assert found.active == "active"
    later.stop("tiny")
    later.close()
    assert box.state().active == "inactive"


def test_killing_the_panel_leaves_the_engine(box: Box) -> None:
    """A gpudeck starts an engine; then its whole process group is killed, as a lost login does."""
    box.runner.install(box.spec(SLEEP))
    panel = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time\n"
            "from pathlib import Path\n"
            "from gpudeck.services.engine.embedded import EmbeddedRunner\n"
            f"EmbeddedRunner(home=Path({str(box.home)!r})).start('tiny')\n"
            "print('started', flush=True)\n"
            "time.sleep(600)\n",
        ],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert panel.stdout is not None
    assert panel.stdout.readline() == b"started\n"
    os.killpg(panel.pid, signal.SIGHUP)
    os.killpg(panel.pid, signal.SIGKILL)
    panel.wait()
    panel.stdout.close()
    until(lambda: "up" in box.log())
    assert box.state().active == "active"


def test_killing_the_supervisor_leaves_an_engine_that_can_be_stopped(box: Box) -> None:
    box.started(SPAWNS)
    run = box.files().run()
    assert run is not None
    until(lambda: len(descendants(run.supervisor.pid)) == 3)
    everyone = descendants(run.supervisor.pid)
    run.supervisor.send(signal.SIGKILL)
    assert run.supervisor.wait(5)
    assert box.state().active == "active"
    run.main.send(signal.SIGKILL)
    assert run.main.wait(5)
    until(lambda: box.state().active == "failed")
    with pytest.raises(OperatorError, match="left over"):
        box.runner.start("tiny")
    box.runner.stop("tiny")
    assert [each for each in everyone if each.alive] == []


def test_a_name_in_use(box: Box) -> None:
    box.started(SLEEP)
    with pytest.raises(OperatorError, match="runs with other settings"):
        box.runner.install(box.spec(SLEEP, "tiny", EXTRA="1"))
    box.runner.install(box.spec(SLEEP))


def test_a_directory_that_gpudeck_did_not_write(box: Box) -> None:
    box.files().path.mkdir(parents=True)
    box.files().command.write_text("{}")
    spec = box.spec(SLEEP)
    assert not box.runner.preview(spec).managed
    with pytest.raises(OperatorError, match="not written by gpudeck"):
        box.runner.install(spec)
    assert box.files().command.read_text() == "{}"
    box.files().command.unlink()


def test_start_at_boot_is_refused_before_anything_is_written(box: Box) -> None:
    with pytest.raises(OperatorError, match="at boot"):
        box.runner.install(box.spec(SLEEP), enable=True)
    assert not box.files().path.exists()


@pytest.mark.parametrize("name", ["../x", "", "A b", "x/y"])
def test_names_that_lead_elsewhere(box: Box, name: str) -> None:
    with pytest.raises(OperatorError):
        box.runner.state(name)


def test_an_unknown_engine(box: Box) -> None:
    with pytest.raises(OperatorError, match="no engine named ghost"):
        box.runner.start("ghost")
    assert box.runner.state("ghost") is None


def test_remove_stops_and_deletes(box: Box) -> None:
    state = box.started(SLEEP)
    assert state.main_pid is not None
    main = process(state.main_pid)
    box.runner.remove("tiny")
    assert main is not None
    assert not main.alive
    assert box.runner.engines() == ()
    assert not box.files().path.exists()


def test_a_run_of_an_earlier_boot_is_over(box: Box) -> None:
    box.started(SLEEP)
    run_file = box.files().path / "run.json"
    text = run_file.read_text()
    run = box.files().run()
    assert run is not None
    run_file.write_text(text.replace(run.boot, "another-boot"))
    assert box.state().active == "inactive"
    run_file.write_text(text)


def test_a_number_given_out_anew_is_not_the_engine(box: Box) -> None:
    """The pid lives, but it is this test's process, born before the run that the file tells of."""
    box.started(SLEEP)
    box.runner.stop("tiny")
    run_file = box.files().path / "run.json"
    run = box.files().run()
    assert run is not None
    stale = run_file.read_text().replace(f'"pid": {run.supervisor.pid}', f'"pid": {os.getpid()}')
    run_file.write_text(stale.replace(f'"pid": {run.main.pid}', f'"pid": {os.getpid()}'))
    (box.files().path / "end.json").unlink()
    assert box.state().active == "failed"
    box.runner.stop("tiny")  # and this process is still here to say so


def test_watch_tells_every_change(box: Box) -> None:
    told: list[UnitState] = []
    end = box.runner.watch(told.append)
    state = box.started(SLEEP)
    until(lambda: any(each.active == "active" for each in told))
    assert state.main_pid is not None
    os.kill(state.main_pid, signal.SIGKILL)
    until(lambda: told[-1].active == "failed")
    end()
    count = len(told)
    box.runner.remove("tiny")
    assert len(told) == count


def test_two_gpudecks_start_one_engine(box: Box) -> None:
    box.runner.install(box.spec(SLEEP))
    other = EmbeddedRunner(home=box.home)
    threads = [threading.Thread(target=runner.start, args=("tiny",)) for runner in (box.runner, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    until(lambda: "up" in box.log())
    commands = [title(each.pid) for each in psutil.process_iter()]
    assert sum(str(box.folder / "tiny.py") in command for command in commands) == 1


def test_the_log_is_followed_from_run_to_run(box: Box) -> None:
    lines: list[LogLine] = []
    box.runner.install(box.spec("print('up', flush=True)"))
    follower = box.runner.follow("tiny", lines.extend)
    follower.start()
    box.runner.start("tiny")
    until(lambda: box.state().active == "failed")
    until(lambda: len(lines) == 1)
    box.runner.start("tiny")
    until(lambda: [line.text for line in lines] == ["up", "up"])
    follower.stop()
    assert [line.text for line in box.runner.history("tiny")] == ["up", "up"]
    assert len(box.runner.history("tiny", 1)) == 1


def test_the_start_before_is_kept_with_its_end_and_its_log(box: Box) -> None:
    box.started("import sys; print('up', flush=True); sys.exit(3)")
    until(lambda: box.state().active == "failed", "the end")
    (only,) = box.runner.starts("tiny")
    assert (only.outcome, only.failed) == ("ended with exit status 3", True)
    box.started("print('up again', flush=True); import time; time.sleep(1000)")
    now, before = box.runner.starts("tiny")
    assert (now.outcome, now.ended, before.outcome, before.failed) == ("", None, only.outcome, True)
    assert before.at == only.at
    assert [line.text for line in box.runner.log_of("tiny", now)] == ["up again"]
    assert [line.text for line in box.runner.log_of("tiny", before)] == ["up"]
    box.runner.stop("tiny")
    now, _before = box.runner.starts("tiny")
    assert (now.outcome, now.failed) == ("stopped", False)


def test_a_log_that_was_cut_is_one_start(box: Box) -> None:
    box.started(SLEEP)
    box.files().previous_log.write_text("older\n")
    (now,) = box.runner.starts("tiny")
    assert [line.text for line in box.runner.log_of("tiny", now)] == ["older", *box.log().splitlines()]
