"""`gpudeck doctor`: what works here and what does not; 1 when something needed is missing."""

import argparse

from gpudeck.app.commands.common import box_source, print_json
from gpudeck.app.terminal import speaks_unicode
from gpudeck.services.doctor import Health, examine
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    if args.box_file:
        raise OperatorError("A recorded box tells nothing of this machine: leave --box out.")
    checks = examine(box_source(args), demo=bool(args.demo), unicode=speaks_unicode())
    if args.json:
        print_json({"checks": [{"part": c.part, "health": c.health.value, "says": c.says} for c in checks]})
    else:
        width = max(len(check.part) for check in checks)
        for check in checks:
            print(f"{check.health.value:8} {check.part:{width}}  {printable(check.says)}")
    return 1 if any(check.health is Health.MISSING for check in checks) else 0
