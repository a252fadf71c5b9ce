"""`gpudeck reload NAME`: have systemd read its units anew, so that a change on disk counts."""

import argparse

from gpudeck.app.commands.common import known_engine, runner_for, told_command
from gpudeck.app.commands.confirm import confirmed
from gpudeck.app.commands.drifted import drift_lines
from gpudeck.app.commands.reloading import risk_of_reload
from gpudeck.services.engine.drift import DriftKind
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the engine whose unit was changed on disk")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace) -> int:
    runner = runner_for(args)
    try:
        state = known_engine(runner, args.name)
        stale = [drift for drift in runner.drift(state.name) if drift.kind is DriftKind.ON_DISK]
        if not stale:
            print(f"systemd has {printable(state.unit)} as it stands on disk.")
            return 0
        for line in drift_lines(stale):
            print(line)
        risk = risk_of_reload(args, state.scope)
        what = f"This has systemd read all of its units anew.{' No engine is restarted.' if state.runs else ''}"
        if not confirmed(f"{risk} {what}".strip(), yes=args.yes):
            return 1
        runner.reload(state.name)
        name = printable(state.name)
        then = told_command(args, f"{'restart' if state.runs else 'start'} {name}")
        print(f"systemd has read it. `{then}` runs {name} by it.")
    finally:
        runner.close()
    return 0
