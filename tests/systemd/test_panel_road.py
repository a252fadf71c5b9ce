"""The panel in a real terminal, as root, under a booted systemd."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpudeck.services.engine.choose import DEMO_PREFIX
from gpudeck.services.engine.types import Scope
from gpudeck.services.plan.types import EngineOptions
from tests.rigs.at_the_panel import GPUDECK, choose_model, free_port, set_options
from tests.rigs.demo_units import MODEL, UNIT, Manager, home_of, walk
from tests.rigs.fakenvml.fixtures import PlayedBox
from tests.rigs.small_engines import engine, inside_systemd, until
from tests.rigs.terminal import Terminal
from tests.services.box.boxes import busy, pair

pytestmark = [*inside_systemd, pytest.mark.terminal, pytest.mark.timeout(180)]

UNITS = Path("/etc/systemd/system")
SYSTEM = Manager()


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), **home_of(tmp_path)}


@pytest.fixture
def unit() -> Iterator[Callable[[str, str], Path]]:
    """Writes a unit as an operator would; it is stopped and deleted after the test."""
    written: list[Path] = []

    def write(name: str, text: str) -> Path:
        path = UNITS / name
        path.write_text(text)
        written.append(path)
        SYSTEM.systemctl("daemon-reload")
        return path

    yield write
    for path in written:
        SYSTEM.systemctl("stop", path.name)
        path.unlink(missing_ok=True)
    SYSTEM.systemctl("daemon-reload")


def test_the_demos_road(home: dict[str, str]) -> None:
    walk(SYSTEM, home, UNITS / UNIT, "systemd (system)")


def test_a_unit_of_that_name_that_others_wrote_is_shown_and_kept(
    home: dict[str, str], unit: Callable[[str, str], Path]
) -> None:
    text = "[Service]\nExecStart=/bin/sleep 1000\n"
    theirs = unit(UNIT, text)
    with Terminal([*GPUDECK, "--demo"], env=home) as terminal:
        terminal.wait_for("demo-mixed")
        terminal.wait_for("systemd (system)")
        choose_model(terminal, MODEL)
        set_options(terminal, {"name": MODEL, "--port": str(free_port())})
        terminal.press("p")
        terminal.wait_for("Proposed")
        terminal.press("s")
        terminal.wait_for("gpudeck did not write it")
        terminal.press("enter", "y", "escape", "q")
        assert terminal.wait_end() == 0
    assert theirs.read_text() == text
    assert SYSTEM.is_active() == "inactive"


def test_an_engine_that_crashes_again_and_again(home: dict[str, str], tmp_path: Path) -> None:
    from gpudeck.services.engine.systemd.manager import SystemdRunner

    runner = SystemdRunner(Scope.SYSTEM, DEMO_PREFIX)
    runner.install(
        engine(
            tmp_path,
            "crashes",
            "echo RuntimeError: no such device; exit 3",
            model=str(tmp_path),
            options=EngineOptions(port=free_port()),
        )
    )
    with Terminal([*GPUDECK, "--demo"], env=home) as terminal:
        terminal.wait_for("demo-mixed")
        terminal.press("3")
        terminal.wait_for("crashes")
        terminal.press("s")
        terminal.wait_for("restarting")
        terminal.wait_for("RuntimeError: no such device")
        # The next try clears the log; what the last one died of stays a key away.
        terminal.press("4", "h")
        terminal.wait_for("ended with exit status 3")
        terminal.press("escape", "r")
        terminal.wait_for("Esc goes back to the present run")
        terminal.wait_for("RuntimeError: no such device")
        terminal.press("escape", "3")
        terminal.press("x")
        terminal.wait_for("stop crashes")
        terminal.press("y")
        terminal.wait_for("is stopped; none")
        assert SYSTEM.is_active("gpudeck-demo-crashes.service") in ("inactive", "failed")
        # Deleted behind the panel's back, it leaves the panel.
        runner.remove("crashes")
        terminal.wait_for("No vLLM engine on this box yet")
        terminal.press("q")
        assert terminal.wait_end() == 0
    runner.close()


def test_an_engine_is_restarted_by_the_clock(home: dict[str, str], tmp_path: Path) -> None:
    from gpudeck.services.engine.systemd.manager import SystemdRunner

    runner = SystemdRunner(Scope.SYSTEM, DEMO_PREFIX)
    runner.install(engine(tmp_path, "clocked", "exec sleep 1000", options=EngineOptions(port=free_port())))
    with Terminal([*GPUDECK, "--demo"], env=home) as terminal:
        terminal.wait_for("clocked")
        terminal.press("3", "T")
        terminal.wait_for("Restart clocked by the clock")
        terminal.write("Sun 99:00")
        terminal.press("enter")
        terminal.wait_for("no calendar event")
        terminal.press("T")
        terminal.wait_for("Restart clocked by the clock")
        terminal.write("Sun 04:00")
        terminal.press("enter")
        terminal.wait_for("restarted by the clock: Sun 04:00")
        assert SYSTEM.is_active("gpudeck-restart-gpudeck-demo-clocked.timer") == "active"
        assert runner.schedule("clocked") is not None
        terminal.press("q")  # a demo takes its engines along
        assert terminal.wait_end() == 0
    assert runner.schedule("clocked") is None
    runner.close()


def test_a_foreign_units_words_are_text(
    home: dict[str, str], unit: Callable[[str, str], Path], fake_nvml: Callable[..., PlayedBox]
) -> None:
    path = unit(
        "vllm-theirs.service",
        "[Unit]\nDescription=[red]not red[/red] \x1b]0;owned\x07\n"
        "[Service]\nExecStart=/bin/sh -c 'printf \"\\\\033]0;owned\\\\007[bold]line[/bold]\\\\n\"; exec sleep 1000'\n",
    )
    SYSTEM.systemctl("start", path.name)
    playing = fake_nvml(pair(), (busy(0), busy(1)))
    with Terminal(GPUDECK, env={**playing.environment, **home}) as terminal:
        terminal.wait_for("systemd (system)")
        terminal.wait_for("theirs")
        terminal.wait_for("^[]0;owned^G[bold]line[/bold]")
        terminal.press("3", "D")
        terminal.wait_for("was not written by gpudeck")
        terminal.press("x")
        terminal.wait_for("stop theirs")
        terminal.press("y")
        terminal.wait_for("is stopped; none")
        terminal.press("q")
        assert terminal.wait_end() == 0
    assert path.exists()
    assert SYSTEM.is_active(path.name) == "inactive"


def test_the_bus_breaks_while_the_panel_is_open(home: dict[str, str], tmp_path: Path) -> None:
    from gpudeck.services.engine.systemd.manager import SystemdRunner

    runner = SystemdRunner(Scope.SYSTEM, DEMO_PREFIX)
    runner.install(engine(tmp_path, "survivor", "echo up; exec sleep 1000", options=EngineOptions(port=free_port())))
    runner.start("survivor")
    with Terminal([*GPUDECK, "--demo"], env=home) as terminal:
        terminal.wait_for("survivor")
        subprocess.run(["systemctl", "kill", "-s", "KILL", "dbus.service"], check=True)
        until("the bus does not come back", lambda: SYSTEM.is_active("dbus.service") == "active")
        terminal.press("3", "x")
        terminal.wait_for("stop survivor")
        terminal.press("y")
        terminal.wait_for("is stopped; none", 60)
        terminal.press("q")
        assert terminal.wait_end() == 0
    assert SYSTEM.is_active("gpudeck-demo-survivor.service") == "inactive"
    runner.close()
