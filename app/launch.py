"""Opening the panel: what is checked before the first frame, and what the panel is given."""

import argparse
import logging

from gpudeck.app.collector import settle_soon
from gpudeck.app.terminal import draws_unicode, guard_screen, require_terminal


def open_panel(args: argparse.Namespace) -> int:
    """Run the panel until the operator leaves; returns the exit code."""
    if args.demo:
        from gpudeck.services.box.simulated import simulated_box

        simulated_box(args.demo)  # a wrong name is told first, on whatever terminal
    require_terminal()
    # Looked at before Textual is imported: a box file that can not be read is told on the plain terminal.
    from gpudeck.app.panel import Panel, setup_from

    setup = setup_from(args, ascii_only=bool(args.plain) or not draws_unicode())
    guard_screen()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(threadName)s %(message)s")
    panel = Panel(setup)
    settle_soon()
    panel.run()
    return panel.return_code or 0
