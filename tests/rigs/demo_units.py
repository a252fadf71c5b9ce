"""The demo's road in a real terminal where a systemd is booted, and what that systemd says of it."""

import json
import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.rigs.at_the_panel import GPUDECK, answered, choose_model, drag_card, free_port, set_options
from tests.rigs.terminal import Terminal

MODEL = "demo-llama-3.1-8b"
UNIT = f"gpudeck-demo-{MODEL}.service"


@dataclass(frozen=True)
class Manager:
    """One systemd, asked by its own tools."""

    words: tuple[str, ...] = ()  # ("--user",) for the user's own

    def systemctl(self, *words: str) -> str:
        done = subprocess.run(["systemctl", *self.words, *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def is_active(self, unit: str = UNIT) -> str:
        return self.systemctl("is-active", unit)

    def pids(self, unit: str = UNIT) -> list[int]:
        """Every process in the unit's control group.  The kernel lists them in no order, and may name one twice."""
        group = self.systemctl("show", "-P", "ControlGroup", unit)
        folder = Path(f"/sys/fs/cgroup{group}")
        if not group or not folder.exists():
            return []
        return sorted({int(line) for file in folder.rglob("cgroup.procs") for line in file.read_text().split()})

    def journal(self, unit: str = UNIT) -> list[str]:
        option = "--user-unit" if self.words else "--unit"
        done = subprocess.run(
            ["journalctl", f"{option}={unit}", "-o", "json", "-a", "--no-pager"], capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return [str(json.loads(line).get("MESSAGE")) for line in done.stdout.splitlines()]


def home_of(folder: Path) -> dict[str, str]:
    """A home of its own for the panel.  systemd's own folders stay where that systemd looks for them."""
    return {
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "GPUDECK_SIMULATOR_SPEED": "4",
    }


def walk(manager: Manager, home: dict[str, str], unit_file: Path, runner: str) -> None:
    """From bare cards to an answer.  The engine outlives three ends of the panel; the demo's last question ends it."""
    with Terminal([*GPUDECK, "--demo"], env=home, rows=60) as terminal:
        terminal.wait_for("demo-mixed")
        terminal.wait_for(runner)
        choose_model(terminal, MODEL)
        set_options(terminal, {"--port": str(free_port())})
        drag_card(terminal, "1 A100-SXM4", "stage 0")
        terminal.wait_for("32 layers")
        drag_card(terminal, "2 A100-SXM4", "+ rank 1")
        terminal.press("s")
        terminal.wait_for("What will run")
        terminal.wait_for(str(unit_file))
        assert not unit_file.exists()
        terminal.press("enter")
        terminal.wait_for("is ready", 60)
        assert manager.is_active() == "active"
        assert manager.systemctl("show", "-P", "FragmentPath", UNIT) == str(unit_file)
        assert any("SIMULATED engine" in line for line in manager.journal())
        pids = manager.pids()
        assert len(pids) > 2, "the server, its engine core and two workers"
        terminal.press("c")
        terminal.write("what are you?")
        terminal.press("enter")
        terminal.wait_until(answered, "answer")
        assert any("POST /v1/chat/completions" in line for line in manager.journal())
        terminal.process.send_signal(signal.SIGKILL)
        terminal.wait_end()
    assert manager.pids() == pids
    with Terminal([*GPUDECK, "--demo"], env=home, columns=100, rows=30) as terminal:
        terminal.wait_for("demo-mixed")
        terminal.press("3")
        terminal.wait_until(shows_ready, "ready engine")
        terminal.press("q")
        terminal.wait_for("still runs")
        terminal.press("n")
        assert terminal.wait_end() == 0
    assert manager.pids() == pids
    terminal = Terminal([*GPUDECK, "--demo"], env=home)
    terminal.wait_for("demo-mixed")
    terminal.wait_for(f":{_port(unit_file)}")
    os.close(terminal.master)  # the line drops
    terminal.wait_end()
    assert manager.pids() == pids
    with Terminal([*GPUDECK, "--demo"], env=home, columns=100, rows=30) as terminal:
        terminal.wait_for("demo-mixed")
        terminal.press("3")
        terminal.wait_until(shows_ready, "ready engine")
        terminal.press("q")
        terminal.wait_for("remove with the demo")
        terminal.press("y")
        assert terminal.wait_end(60) == 0
    assert not unit_file.exists()
    assert manager.systemctl("show", "-P", "LoadState", UNIT) == "not-found"
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def shows_ready(screen: str) -> bool:
    """Whether the engine's row says that it is ready."""
    return re.search(f"{re.escape(MODEL)} +ready +:", screen) is not None


def _port(unit_file: Path) -> str:
    """The port in the unit's command."""
    words = unit_file.read_text().partition("ExecStart=")[2].splitlines()[0].split()
    return words[words.index("--port") + 1]
