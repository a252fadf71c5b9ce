"""`gpudeck polkit`: the rule that lets a group start and stop the engines that root installed."""

import argparse
import sys

from gpudeck.services.engine.systemd.polkit import GROUP, PLACE, rule_text


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", default=GROUP, metavar="NAME", help=f"who may (default: {GROUP})")
    parser.epilog = f"Nothing is changed: root writes what is printed to {PLACE}."


def run(args: argparse.Namespace) -> int:
    sys.stdout.write(rule_text(args.group))
    return 0
