"""An operator at the panel: what a person does, in the panel's own words, at a real terminal."""

import re
import socket
import sys
from collections.abc import Mapping

from tests.rigs.terminal import Terminal

GPUDECK = (sys.executable, "-m", "gpudeck.app")

# The options form's fields from the top.
FIELDS = (
    "name",
    "--host",
    "--port",
    "--served-model-name",
    "--max-model-len",
    "--gpu-memory-utilization",
    "--max-num-seqs",
    "--max-num-batched-tokens",
    "--dtype",
    "--kv-cache-dtype",
    "--quantization",
    "--load-format",
    "--enforce-eager",
)


def answered(screen: str) -> bool:
    """Whether an answer is whole: the chat then tells the tokens of prompt and answer, as nothing else does."""
    return re.search(r"\d \+ \d", screen) is not None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def choose_model(terminal: Terminal, name: str) -> None:
    terminal.press("m")
    terminal.wait_for(name)
    terminal.write(name)
    terminal.press("enter")
    terminal.wait_for(f"Board  {name}")


def set_options(terminal: Terminal, options: Mapping[str, str]) -> None:
    """Fill fields of the options form; a flag is set by the value "yes"."""
    terminal.press("a")
    terminal.wait_for("--enforce-eager")
    for field in FIELDS:
        if field in options:
            terminal.press(*(["space"] if field == "--enforce-eager" else ["ctrl+u"]))
            if field != "--enforce-eager":
                terminal.write(options[field])
        terminal.press("tab")
    terminal.press("ctrl+s")
    terminal.wait_until(lambda screen: "--enforce-eager" not in screen, "the form gone")


def drag_card(terminal: Terminal, card: str, onto: str) -> None:
    """Drag a card from the pool onto a target, which may show its name (`+ rank 1`) only once the card is lifted."""
    column, row = terminal.wait_for(card)
    terminal.mouse("press", column + 2, row)
    terminal.mouse("move", column + 4, row)
    target = terminal.wait_for(onto)
    terminal.drag_on((column + 4, row), target)
    terminal.mouse("release", *target)
    terminal.settle()


def stop_selected(terminal: Terminal, engine: str) -> None:
    terminal.press("x")
    terminal.wait_for(f"stop {engine}")
    terminal.press("y")
    terminal.wait_for("is stopped; none", 120)
