"""Engines that fail on a real card, each told by gpudeck from the running engine.

A plan that is blocked is installed with --force; what no plan can say is edited into the command by hand.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Callable

import psutil

from tests.hardware.roadside import MIB, Roadside
from tests.rigs.at_the_panel import free_port

MODEL = "llama-3.1-8b"
SMALL = "llama-3.2-1b"
LARGE = "mixtral-8x22b"  # 262 GiB of weights
_FILL = """
import sys, torch
held = torch.empty(int(sys.argv[1]), dtype=torch.uint8, device="cuda")
print("held", flush=True)
sys.stdin.read()
"""


def _install(side: Roadside, model: str, *options: str) -> str:
    port = str(free_port())
    side.run(
        "install", str(side.models / model), "--stage", "0", "--port", port, "--load-format", "dummy",
        "--enforce-eager", "--yes", *options,
    )  # fmt: skip
    return model


def too_long(side: Roadside) -> None:
    """More context than the KV cache holds: the offered length is put on the board by its key, and starts."""
    name = _install(side, MODEL, "--force", "--max-model-len", "131072", "--gpu-memory-utilization", "0.18")
    with side.panel() as terminal:
        terminal.wait_for("H200", 60)
        terminal.press("3")
        terminal.wait_for(name)
        terminal.press("s")
        terminal.wait_until(lambda screen: re.search(rf"{name} +failed", screen) is not None, "failed engine", 180)
        terminal.settle()
        side.keep(terminal, "too-long")
        terminal.press("f")
        terminal.settle()
        side.keep(terminal, "too-long-mended")
        terminal.press("2", "s")
        terminal.wait_for("What will run")
        terminal.settle()
        side.keep(terminal, "too-long-review")
        terminal.press("enter")
        terminal.wait_until(lambda screen: "is ready" in screen, "ready engine", 240)
        side.keep(terminal, "too-long-ready")
        terminal.press("q")
        terminal.settle()
    side.run("stop", name)


def filled(side: Roadside) -> None:
    """The card is held by a stranger's process, which is named."""
    name = _install(side, SMALL)
    with subprocess.Popen(
        [sys.executable, "-c", _FILL, str(60 << 30)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as stranger:
        assert stranger.stdout is not None
        assert stranger.stdin is not None
        stranger.stdout.readline()
        try:
            printed = side.run("start", name, expect=1)
            side.note(named=str(stranger.pid) in printed)
            printed = side.run("plan", str(side.models / SMALL), "--stage", "0", expect=None)
            side.note(named_by_plan=str(stranger.pid) in printed)
        finally:
            stranger.stdin.close()
    side.until_free()


def out_of_memory(side: Roadside) -> None:
    """Weights that are larger than the card."""
    name = _install(side, LARGE, "--force")
    side.run("start", name, expect=1)
    side.run("diagnose", "--engine", name, expect=None)


def unknown_flag(side: Roadside) -> None:
    name = _install(side, SMALL)
    side.edit(name, "--enforce-eager", "--enforce-eagerly")
    printed = side.run("start", name, expect=1)
    assert "--enforce-eagerly" in printed


def server_killed(side: Roadside) -> None:
    """The API server alone is killed; what it leaves on the card is told, and ended when told to."""
    name = _install(side, SMALL)
    side.run("start", name)
    held = side.used_bytes()
    core = side.process("VLLM::EngineCore")
    server = core.parent()
    assert server is not None
    server.send_signal(signal.SIGKILL)
    server.wait(30)
    side.note(core_lives=core.is_running(), held_mib=(side.used_bytes() - side.used_before) // MIB, of=held // MIB)
    side.run("status", name, expect=None)
    side.run("box")
    side.run("stop", name, expect=None)
    side.until(lambda: not side.pids_on_card(), "bare card", 60)
    side.run("status", name, expect=None)


def core_killed(side: Roadside) -> None:
    """EngineCore is killed while it serves: vLLM then leaves with exit code 0 after a while."""
    name = _install(side, SMALL)
    side.run("start", name)
    with side.panel() as terminal:
        terminal.wait_for("H200", 60)
        terminal.wait_for("ready", 60)
        core = side.process("VLLM::EngineCore")
        server = core.parent()
        core.send_signal(signal.SIGKILL)
        assert server is not None
        side.until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE, "end of the server")
        terminal.settle()
        terminal.press("3")
        terminal.settle()
        side.keep(terminal, "core-killed")
    side.run("status", name, expect=None)
    side.run("diagnose", "--engine", name, expect=None)


FAILURES: dict[str, Callable[[Roadside], None]] = {
    "too-long": too_long,
    "core-killed": core_killed,
    "server-killed": server_killed,
    "out-of-memory": out_of_memory,
    "filled": filled,
    "unknown-flag": unknown_flag,
}
