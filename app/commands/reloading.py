"""What is said before a command has the machine's systemd read its units anew."""

import argparse

from gpudeck.app.commands.common import read_box
from gpudeck.services.box.containers import reload_risk
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError


def risk_of_reload(args: argparse.Namespace, scope: Scope) -> str:
    """A sentence where containers use cards of this box; "" where a reload can not touch them.

    A user's own systemd has no say over the devices of containers.
    """
    if scope is not Scope.SYSTEM or args.demo:
        return ""
    try:
        return reload_risk(read_box(args))
    except OperatorError:
        return ""  # without a driver no container has a card
