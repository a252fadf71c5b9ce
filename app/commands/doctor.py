"""`gpudeck doctor`: what works here and what does not; 1 when something needed is missing."""

import argparse

from gpudeck.app.commands.common import box_source, print_json
from gpudeck.app.terminal import draws_unicode
from gpudeck.services.doctor.check import Health
from gpudeck.services.doctor.examine import examine
from gpudeck.services.doctor.report import document
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    if args.box_file:
        raise OperatorError("A recorded box tells nothing of this machine: leave --box out.")
    found = examine(box_source(args), demo=bool(args.demo), unicode=draws_unicode())
    if args.json:
        print_json(document(found))
    else:
        width = max(len(check.part) for check in found.checks)
        for check in found.checks:
            print(f"{check.health.value:8} {check.part:{width}}  {printable(check.says)}")
    return 1 if any(check.health is Health.MISSING for check in found.checks) else 0
