"""`gpudeck completions SHELL`: a script by which a shell completes commands, options and engines."""

import argparse
import sys

from gpudeck.services.errors import OperatorError

SHELLS = ("bash", "zsh", "fish")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    parser.epilog = "Where to put it: gpudeck completions bash > ~/.local/share/bash-completion/completions/gpudeck"


def run(args: argparse.Namespace) -> int:
    from gpudeck.app.completing import script

    try:
        sys.stdout.write(script(args.shell))
    except ImportError:
        raise OperatorError("The package shtab is missing: install gpudeck anew, or pip install shtab.") from None
    return 0
