"""How a panel in a real terminal ends, by itself and by others; an engine outlives every one of these ends."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.rigs.at_the_panel import GPUDECK
from tests.rigs.fakenvml.fixtures import FakeNvml
from tests.rigs.small_engines import until
from tests.rigs.terminal import Terminal
from tests.services.box.boxes import busy, pair

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(120)]

# A panel leaves in a second or so, on a machine under load it takes longer, and one that waits for a driver never does.
PATIENCE_S = 20


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }


def given_back(terminal: Terminal) -> bool:
    """Whether mouse, other screen and bracketed paste are off again, and the cursor is on (DEC private modes)."""
    modes = {mode >> 5 for mode in terminal._screen.mode}
    return 25 in modes and not modes & {1000, 1002, 1003, 1006, 1049, 2004}


def panel_log(home: dict[str, str]) -> str:
    return (Path(home["XDG_STATE_HOME"]) / "gpudeck" / "panel.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_panel_and_gives_the_terminal_back(home: dict[str, str], number: signal.Signals) -> None:
    with Terminal([*GPUDECK, "--demo"], env=home) as terminal:
        terminal.wait_for("demo-mixed")
        terminal.process.send_signal(number)
        assert terminal.wait_end(PATIENCE_S) == 128 + number
        until("the terminal is as the panel used it", lambda: given_back(terminal))
    assert panel_log(home) == ""


def test_the_line_drops(home: dict[str, str]) -> None:
    terminal = Terminal([*GPUDECK, "--demo"], env=home)
    terminal.wait_for("demo-mixed")
    os.close(terminal.master)
    try:
        assert terminal.process.wait(PATIENCE_S) == 128 + signal.SIGHUP
    finally:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.process.wait()
    assert "Traceback" not in panel_log(home)


def test_ctrl_c_does_not_end_the_panel(home: dict[str, str]) -> None:
    with Terminal([*GPUDECK, "--demo"], env=home) as terminal:
        terminal.wait_for("demo-mixed")
        terminal.press("ctrl+c", "m")
        terminal.wait_for("Model")
        terminal.press("escape", "q")
        assert terminal.wait_end(PATIENCE_S) == 0


def test_leaving_does_not_wait_for_a_driver_that_hangs(home: dict[str, str], fake_nvml: FakeNvml) -> None:
    playing = fake_nvml(pair(), (busy(0), busy(1)))
    with Terminal(GPUDECK, env={**playing.environment, **home}) as terminal:
        terminal.wait_for("A100")
        terminal.wait_for("87 %")
        playing.change({"gpu.0.power_mw.delay_us": "600000000"})
        terminal.wait_for("does not answer")
        terminal.press("?")
        terminal.wait_for("Everywhere")
        terminal.press("escape")
        began = time.monotonic()
        terminal.press("q")
        assert terminal.wait_end(PATIENCE_S) == 0
        took = time.monotonic() - began
    print(f"left after {took:.2f} s")
    assert panel_log(home) == ""


def test_a_terminal_that_shrinks_and_grows(home: dict[str, str]) -> None:
    with Terminal([*GPUDECK, "--demo"], env=home, columns=120, rows=36) as terminal:
        terminal.wait_for("demo-mixed")
        terminal.wait_for("Engines")
        terminal.resize(20, 5)
        terminal.wait_for("gpudeck")
        terminal.press("1", "2", "4", "3")
        terminal.resize(80, 24)
        terminal.wait_for("No vLLM engine on this box yet")
        terminal.press("1")
        terminal.wait_for("RTX 4090 D")
        terminal.resize(120, 36)
        terminal.wait_for("─ Chat ")
        terminal.press("q")
        assert terminal.wait_end(PATIENCE_S) == 0
    assert panel_log(home) == ""


@pytest.mark.parametrize("term", ["dumb", "", "unknown"])
def test_a_terminal_that_can_place_no_cursor(home: dict[str, str], term: str) -> None:
    with Terminal([*GPUDECK, "--demo"], env={**home, "TERM": term}) as terminal:
        assert terminal.wait_end(PATIENCE_S) == 1
        assert f"gpudeck: TERM={term} can not place a cursor" in terminal.text()
        assert "Traceback" not in terminal.text()


@pytest.mark.parametrize("environment", [{"TERM": "linux"}, {"LANG": "C", "LC_ALL": "C"}])
def test_a_terminal_with_few_signs_is_drawn_on_in_ascii(home: dict[str, str], environment: dict[str, str]) -> None:
    with Terminal([*GPUDECK, "--demo"], columns=80, rows=24, env={**home, "COLORTERM": "", **environment}) as terminal:
        terminal.wait_for("Choose a model: m")
        for keys in ("1", "3", "4", "5"):
            terminal.press("escape", keys)
            assert terminal.text().isascii(), terminal.text()
        terminal.press("escape", "2", "m")
        terminal.wait_for("filter, or a path")
        assert terminal.text().isascii()
        assert terminal.invisible() == ""
        terminal.press("escape")
        terminal.wait_until(lambda screen: "filter, or a path" not in screen, "the picker gone")
        terminal.press("q")
        assert terminal.wait_end(PATIENCE_S) == 0


@pytest.mark.parametrize("words", [[], ["--demo"], ["--box", "none.json"]])
def test_no_terminal_at_all(home: dict[str, str], words: list[str]) -> None:
    done = subprocess.run(
        [*GPUDECK, *words], env={**os.environ, **home}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("gpudeck: The panel needs a terminal")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--box", "none.json"], "none.json"),
        (["--demo=nope"], "There is no demo box called nope"),
    ],
)
def test_a_box_that_can_not_be_opened_is_told_on_the_plain_terminal(
    home: dict[str, str], words: list[str], said: str
) -> None:
    with Terminal([*GPUDECK, *words], env=home) as terminal:
        assert terminal.wait_end(PATIENCE_S) == 1
        terminal.settle()
        assert said in terminal.text()
        assert "Traceback" not in terminal.text()
