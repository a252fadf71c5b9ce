"""The whole road on the simulated box, in a real terminal, by mouse and keys, under the embedded runner."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.rigs.at_the_panel import GPUDECK, answered, choose_model, drag_card, free_port, set_options, stop_selected
from tests.rigs.terminal import Terminal

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(180)]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A home of its own, and no systemd in sight: what the embedded runner is for."""
    environment = {
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "GPUDECK_SIMULATOR_SPEED": "4",
    }
    yield environment
    for engine in simulated_engines(tmp_path):
        subprocess.run(
            [*GPUDECK, "remove", engine, "--demo", "--yes"], env={**os.environ, **environment}, check=False, timeout=60
        )


def simulated_engines(home: Path) -> list[str]:
    folder = home / "state" / "gpudeck" / "engines"
    return [path.name.removeprefix("gpudeck-demo-").removesuffix(".service") for path in folder.glob("gpudeck-demo-*")]


def engine_processes(home: Path) -> list[psutil.Process]:
    """Every process of a simulated engine that belongs to this home."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if "gpudeck.services.simulator" in words and str(home) in words:
            found.append(process)
    return found


def test_the_whole_road(home: dict[str, str], tmp_path: Path) -> None:
    with Terminal([*GPUDECK, "--demo"], env=home, rows=60) as terminal:
        terminal.wait_for("demo-mixed")
        choose_model(terminal, "demo-llama-3.1-8b")
        set_options(terminal, {"--port": str(free_port())})
        drag_card(terminal, "1 A100-SXM4", "stage 0")
        terminal.wait_for("32 layers")
        drag_card(terminal, "2 A100-SXM4", "+ rank 1")
        terminal.wait_for("NV12")
        terminal.wait_for("ready")
        terminal.press("s")
        terminal.wait_for("What will run")
        terminal.wait_for("CUDA_VISIBLE_DEVICES")
        terminal.press("enter")
        terminal.wait_for("is ready", 60)
        terminal.press("c")
        terminal.write("what are you?")
        terminal.press("enter")
        terminal.wait_for("simulated engine", 30)
        terminal.wait_until(answered, "answer", 30)
        # The panel is killed; the engine is not.
        terminal.process.send_signal(signal.SIGKILL)
        terminal.wait_end()
    assert engine_processes(tmp_path)
    with Terminal([*GPUDECK, "--demo"], env=home, columns=100, rows=30) as terminal:
        terminal.wait_for("demo-mixed")
        terminal.press("3")
        terminal.wait_for("ready")
        stop_selected(terminal, "demo-llama-3.1-8b")
        assert not engine_processes(tmp_path)
        terminal.press("q")
        assert terminal.wait_end() == 0
    assert simulated_engines(tmp_path) == []
