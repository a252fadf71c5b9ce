"""Earlier starts of real units, from the real journal."""

import subprocess
from pathlib import Path

from gpudeck.services.engine.systemd.manager import SystemdRunner
from tests.rigs.small_engines import engine, inside_systemd, until

pytestmark = inside_systemd

SCRIPT = """
n=$(cat {folder}/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > {folder}/n
echo start $n
case $n in 1) exit 3;; 2) kill -9 $$;; esac
exec sleep 1000"""


def test_each_start_has_its_end_and_its_log(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(engine(tmp_path, "again", SCRIPT.format(folder=tmp_path)))
    runner.start("again")
    # systemd restarts it by itself twice: exit status 3, then SIGKILL.
    until("it does not run a third time", lambda: "start 3" in [line.text for line in runner.history("again")], 60)
    until("the ends are not told", lambda: len([one for one in runner.starts("again") if one.failed]) == 2)
    third, second, first = runner.starts("again")
    assert [one.outcome for one in (first, second, third)] == ["ended with exit status 3", "killed by SIGKILL", ""]
    assert first.at is not None
    assert first.ended is not None
    assert second.at is not None
    assert first.at <= first.ended <= second.at
    for number, start in enumerate((first, second, third), 1):
        said = [line.text for line in runner.log_of("again", start)]
        assert [text for text in said if text.startswith("start ")] == [f"start {number}"]
    runner.stop("again")
    until("the stop is not told", lambda: runner.starts("again")[0].outcome == "stopped")
    assert not runner.starts("again")[0].failed
    assert runner.starts("nothing") == ()


def test_a_start_whose_beginning_was_vacuumed_is_there_still(runner: SystemdRunner, tmp_path: Path) -> None:
    runner.install(
        engine(
            tmp_path, "worn", f"echo one; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo two; exec sleep 1000"
        )
    )
    runner.start("worn")
    until("it says nothing", lambda: "one" in [line.text for line in runner.history("worn")])
    subprocess.run(["journalctl", "-q", "--rotate", "--vacuum-size=1"], check=True, capture_output=True)
    until("the beginning is kept", lambda: "one" not in [line.text for line in runner.history("worn")])
    (tmp_path / "go").touch()
    until("it goes on in silence", lambda: "two" in [line.text for line in runner.history("worn")])
    (start,) = runner.starts("worn")
    assert (start.at, start.outcome) == (None, "")
    assert [line.text for line in runner.log_of("worn", start)] == ["two"]
