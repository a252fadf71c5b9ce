"""A real terminal gets only what changed, and can be drawn anew."""

from pathlib import Path

import pytest

from tests.rigs.at_the_panel import GPUDECK
from tests.rigs.terminal import Terminal

pytestmark = [pytest.mark.terminal, pytest.mark.timeout(120)]
GARBAGE = "Broadcast message from the kernel"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    folders = {"HOME": ""} | {f"XDG_{name}_HOME": name.lower() for name in ("STATE", "CACHE", "CONFIG")}
    env = {name: str(tmp_path / folder) for name, folder in folders.items()}
    return Terminal([*GPUDECK, "--demo=nvswitch"], env=env, columns=160, rows=46)


def test_another_programs_words_stay_until_the_screen_is_drawn_anew(terminal: Terminal) -> None:
    with terminal:
        terminal.wait_for("H100")
        with terminal._lock:
            terminal._stream.feed(f"\x1b7\x1b[30;90H{GARBAGE}\x1b8".encode())
        assert terminal.find(GARBAGE)
        terminal.press("ctrl+l")
        terminal.wait_until(lambda screen: GARBAGE not in screen, "end of the garbage")
        assert terminal.find("H100")


def test_a_terminal_of_another_size_shows_the_whole_panel(terminal: Terminal) -> None:
    with terminal:
        terminal.wait_for("H100")
        for columns, rows in ((130, 40), (80, 24), (160, 46)):
            with terminal._lock:
                terminal._stream.feed(b"\x1b[2J")  # as some terminals do with what they showed
            terminal.resize(columns, rows)
            terminal.wait_until(lambda screen: "gpudeck" in screen and "8 GPUs" in screen, "header")
            terminal.wait_for("H100")


def test_a_panel_at_rest_sends_little(terminal: Terminal) -> None:
    """Eight idle cards: a clock, and figures that breathe.  Undiffed it is several kilobytes a second."""
    with terminal:
        terminal.wait_for("H100")
        terminal.wait_until(lambda screen: "demo-nvswitch" in screen, "the box")
        terminal.settle()
        before = terminal.bytes_drawn
        for _ in range(5):
            clock = terminal.lines()[0][-9:]
            terminal.wait_until(lambda screen, clock=clock: screen.splitlines()[0][-9:] != clock, "another second")  # type: ignore[misc]
        assert terminal.bytes_drawn - before < 5 * 1000
