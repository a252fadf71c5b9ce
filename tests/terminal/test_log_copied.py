"""The log handed to a real terminal's clipboard, and a line that would hand over another."""

import base64
from pathlib import Path

import pytest

from gpudeck.services.engine.choose import DEMO_PREFIX
from gpudeck.services.engine.embedded import EmbeddedRunner
from gpudeck.services.plan.types import EngineOptions
from tests.rigs.at_the_panel import GPUDECK, free_port
from tests.rigs.small_engines import engine, until
from tests.rigs.terminal import Terminal

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(120)]


def test_what_is_in_view_is_copied_and_a_line_copies_nothing(tmp_path: Path) -> None:
    places = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("STATE", "CACHE", "CONFIG")}
    runner = EmbeddedRunner(DEMO_PREFIX, home=tmp_path / "state" / "gpudeck" / "engines")
    evil = base64.b64encode(b"rm -rf ~").decode()
    script = f"printf '\\033]52;c;{evil}\\007 größe\\n'; exec sleep 1000"
    runner.install(engine(tmp_path, "talks", script, options=EngineOptions(port=free_port())))
    runner.start("talks")
    try:
        until("it says nothing", lambda: runner.history("talks"))
        with Terminal([*GPUDECK, "--demo"], columns=80, rows=24, env={"HOME": str(tmp_path), **places}) as terminal:
            terminal.wait_for("Choose a model: m")
            terminal.press("3")
            terminal.wait_for("talks")
            terminal.press("4")
            terminal.wait_for("größe")
            assert terminal.clipboard == ""
            terminal.press("y")
            terminal.wait_for("to your terminal's clipboard")
            assert terminal.clipboard == f"^[]52;c;{evil}^G größe\n"
            terminal.press("q")
            terminal.wait_for("Esc stay")
            terminal.press("n")
            assert terminal.wait_end() == 0
    finally:
        runner.remove("talks")
        runner.close()
